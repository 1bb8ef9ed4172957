#include "documents/add_site.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace hpcbatch {
namespace {

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool is_empty_or_comment(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos || line[first] == '#';
}

/// `sites:` alone on its line.
bool begins_list(const std::string& line) {
  return line.starts_with("sites:") && is_empty_or_comment(line.substr(6));
}

std::string indented(const std::string& item, std::size_t blanks) {
  std::string out;
  for (const std::string& line : split_lines(item))
    out += (line.empty() ? line : std::string(blanks, ' ') + line) + "\n";
  return out;
}

}  // namespace

std::optional<std::string> with_site(const std::string& configuration, const std::string& item) {
  const std::vector<std::string> lines = split_lines(configuration);
  const auto key = std::find_if(lines.begin(), lines.end(),
                                [](const std::string& line) { return line.starts_with("sites:"); });
  const std::string ending = configuration.empty() || configuration.back() == '\n' ? "" : "\n";
  if (key == lines.end()) return configuration + ending + "sites:\n" + indented(item, 2);
  if (!begins_list(*key)) return std::nullopt;
  // The next key ends it; what stands between, empty lines and comments, belongs to that one.
  auto end = std::find_if(key + 1, lines.end(), [](const std::string& line) {
    return !is_empty_or_comment(line) && line.front() != ' ' && line.front() != '-';
  });
  while (end != key + 1 && is_empty_or_comment(*(end - 1))) --end;
  const auto first = std::find_if_not(key + 1, end, is_empty_or_comment);
  const std::size_t blanks = first == end ? 2 : first->find('-');
  std::string out;
  for (auto line = lines.begin(); line != end; ++line) out += *line + "\n";
  out += indented(item, blanks == std::string::npos ? 2 : blanks);
  for (auto line = end; line != lines.end(); ++line) out += *line + "\n";
  return out;
}

}  // namespace hpcbatch
