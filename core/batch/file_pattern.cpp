#include "batch/file_pattern.hpp"

#include "model/item.hpp"

#include <algorithm>
#include <cctype>

namespace hpcbatch::batch {
namespace {

/// Wider is no number in SLURM either.
constexpr std::size_t kWidest = 10;

std::string place(std::string_view name, std::size_t width) {
  std::string text = "{" + std::string(name);
  if (width > 0) text += ":" + std::to_string(width);
  return text + "}";
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

/// What stands for a letter; nothing: it is no sign.
std::optional<std::string> meaning_of(char letter, std::size_t width, const PatternNames& names) {
  switch (letter) {
    case 'A':
      return place("array_number", width);
    case 'a':
      // SLURM's "none", which it puts in where there is no array.
      return names.is_array ? place("index", width) : padded("4294967294", width);
    case 'j':
    case 'J':
      return place("number", width);
    case 'N':
      return "{node}";
    case 'n':
    case 't':
      return padded("0", width);
    case 's':
      return "batch";
    case 'u':
      return as_it_stands(names.user);
    case 'x':
      return as_it_stands(names.name);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> slurm_file(std::string_view pattern, const PatternNames& names) {
  std::string path;
  // One backslash, and all is meant as it stands.
  if (pattern.find('\\') != std::string_view::npos) {
    for (const char c : pattern)
      if (c != '\\') path += c;
    return as_it_stands(path);
  }
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '%') {
      path += as_it_stands(pattern.substr(at++, 1));
      continue;
    }
    if (pattern.substr(at).starts_with("%%")) {
      path += '%';
      at += 2;
      continue;
    }
    std::size_t end = at + 1;
    std::size_t width = 0;
    while (end < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[end])) != 0)
      width = std::min(kWidest, width * 10 + static_cast<std::size_t>(pattern[end++] - '0'));
    // Another number of the array, in SLURM 23.02 and later.
    if (end < pattern.size() && pattern[end] == 'b') return std::nullopt;
    const auto meaning =
        end < pattern.size() ? meaning_of(pattern[end], width, names) : std::nullopt;
    if (!meaning) {
      path += pattern[at++];
      continue;
    }
    path += *meaning;
    at = end + 1;
  }
  return path;
}

bool is_slurm_file(std::string_view pattern) {
  return slurm_file(pattern, {}).has_value();
}

}  // namespace hpcbatch::batch
