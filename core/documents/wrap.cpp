#include "documents/wrap.hpp"

#include <algorithm>

namespace hpcbatch {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t used,
                    std::size_t indent) {
  std::string out;
  std::size_t column = used;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find(' '), text.size());
    const std::size_t shown = width_of(text.substr(0, size));
    if (column > indent && column + shown > width) {
      while (out.ends_with(' ')) out.pop_back();
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += text.substr(0, size);
    column += shown;
    text.remove_prefix(size);
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    if (blanks == 0) continue;
    if (column < width) {
      out += ' ';
      ++column;
    }
    text.remove_prefix(blanks);
  }
  return out;
}

}  // namespace hpcbatch
