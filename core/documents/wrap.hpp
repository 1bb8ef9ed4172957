// Lines that are no longer than there is room.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hpcbatch {

/// Letters, not bytes.  Wide letters of Asian scripts count as one: their lines are then a little
/// off.
std::size_t width_of(std::string_view text);

/// Breaks at blanks where a line would be longer than `width` letters; a longer word stays whole.  The
/// first line has `used` letters before it, the others begin with `indent` blanks.
std::string wrapped(std::string_view text, std::size_t width, std::size_t used, std::size_t indent);

}  // namespace hpcbatch
