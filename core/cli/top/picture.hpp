// What `top` looks like.  Pure.
#pragma once

#include "cli/top/canvas.hpp"
#include "cli/top/state.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::top {

/// Where what is drawn; each a row of the terminal, or a number of rows.
struct Layout {
  std::size_t head_rows{1};
  std::size_t tabs_row{1};
  std::size_t first_row{3}, list_rows{0};  ///< of a list, below its titles
  std::size_t text_rows{0};                ///< of a text, in the place of titles and list
  std::size_t foot_row{0};
};
Layout layout_of(const State& state);
/// The pane whose name stands there.
std::optional<Pane> pane_at(const State& state, std::size_t row, std::size_t column);
std::vector<std::string> lines_of_look(const State& state);
std::vector<std::string> lines_of_help(const State& state);

/// Scrolls such that what is selected is in view, and draws.
Canvas picture(State& state, const Abilities& abilities);

/// As many letters, the last values on the right, the largest as high as a letter.
std::string sparkline(const std::vector<double>& values, std::size_t letters, bool is_utf8);
/// `1,234,567`.
std::string grouped(double number);

}  // namespace hpcbatch::top
