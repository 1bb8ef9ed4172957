// How much room there is to write.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace hpcbatch {

struct TerminalSize {
  std::size_t rows{24};
  std::size_t columns{80};
};

/// Nothing where the descriptor is no terminal; 24 by 80 where one does not tell.
std::optional<TerminalSize> terminal_size(int descriptor);

/// The first bytes of a line that show as at most so many letters.
std::string first_letters(const std::string& line, std::size_t letters);

}  // namespace hpcbatch
