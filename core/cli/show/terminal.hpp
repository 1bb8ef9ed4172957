// How much room there is to write.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

struct TerminalSize {
  std::size_t rows{24};
  std::size_t columns{80};
};

/// Nothing where the descriptor is no terminal; 24 by 80 where one does not tell.
std::optional<TerminalSize> terminal_size(int descriptor);

/// How many letters a line of standard output has room for; nothing where it is no terminal.
std::optional<std::size_t> columns_of_output();

/// The first bytes of a line that show as at most so many letters.
std::string first_letters(const std::string& line, std::size_t letters);

/// The line as it can be shown (show_lines), or, on a terminal, as several that it does not cut; those behind the first are
/// indented.
std::string lines_for(int descriptor, std::string_view said, std::size_t indent);

}  // namespace hpcbatch
