#include "dropbox/staged_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace hpcbatch {
namespace {

constexpr std::size_t kLongest = 120;
constexpr std::size_t kLongestEnding = 16;

/// The ending tells a tool what kind of file it is, so it outlives all changes of the name.
std::pair<std::string, std::string> parted(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || name.size() - dot > kLongestEnding) return {name, ""};
  return {name.substr(0, dot), name.substr(dot)};
}

}  // namespace

std::string staged_name(const std::string& path, std::set<std::string>& taken) {
  std::string name = path.substr(path.rfind('/') + 1);
  for (char& c : name) {
    const bool is_fine =
        static_cast<unsigned char>(c) < 0x80 &&
        (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-');
    if (!is_fine) c = '_';
  }
  if (name.empty()) name = "file";
  if (name.front() == '-' || name.front() == '.') name.front() = '_';
  auto [stem, ending] = parted(name);
  stem = stem.substr(0, kLongest - kLongestEnding - 8);
  name = stem + ending;
  for (int number = 2; !taken.insert(name).second; ++number) {
    name = fmt::format("{}_{}{}", stem, number, ending);
  }
  return name;
}

}  // namespace hpcbatch
