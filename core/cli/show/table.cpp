#include "cli/show/table.hpp"

#include "cli/show/terminal.hpp"
#include "documents/text_check.hpp"
#include "model/check.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

/// Letters, not bytes.  Wide letters of Asian scripts count as one: their lines are then a little
/// off.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

/// Never shorter than what says that it is cut.
std::string cut(const std::string& text, std::size_t letters) {
  constexpr std::size_t kLeast = 8;
  letters = std::max(letters, kLeast);
  const std::size_t width = width_of(text);
  if (width <= letters) return text;
  // Long paths mostly differ at their ends.
  const bool is_path = text.find('/') != std::string::npos && text.find(' ') == std::string::npos;
  const std::size_t kept = letters - 3, first = is_path ? kept / 3 : kept;
  const std::string head = first_letters(text, first) + "...";
  return is_path ? head + text.substr(first_letters(text, width - (kept - first)).size()) : head;
}

void append_cell(std::string& line, const std::string& text, std::size_t width, Table::Side side) {
  const std::string padding(width - std::min(width, width_of(text)), ' ');
  if (!line.empty()) line += "  ";
  line += side == Table::Side::Right ? padding + text : text + padding;
}

void finish_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

std::string one_line(std::string_view text) {
  const std::string shown = show_text(text, text.size());
  std::string out;
  for (std::size_t at = 0; at < shown.size(); ++at) {
    const auto byte = static_cast<unsigned char>(shown[at]);
    const auto next = static_cast<unsigned char>(at + 1 < shown.size() ? shown[at + 1] : 0);
    if (byte == '\t') {
      out += "\\x09";
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      // The second set of control characters, which some terminals obey.
      static constexpr char kDigits[] = "0123456789abcdef";
      out += std::string("\\xc2\\x") + kDigits[next >> 4] + kDigits[next & 15];
      ++at;
    } else {
      out += shown[at];
    }
  }
  return out;
}

void Table::add(std::vector<std::string> row) {
  HPCBATCH_CHECK(row.size() == columns_.size());
  for (std::string& text : row) text = one_line(text);
  rows_.push_back(std::move(row));
}

std::string Table::text(std::optional<std::size_t> room) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::vector<std::size_t> shown;
  std::size_t before = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    widths[i] = std::max(widths[i], width_of(columns_[i].title));
    shown.push_back(i);
  }
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) before += widths[shown[i]] + 2;
  std::string out;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (const std::size_t i : shown) {
      const bool is_last = i == shown.back();
      const std::string text =
          is_last && room ? cut(cell(i), *room - std::min(before, *room)) : cell(i);
      // An empty first cell must still push the others to their places.
      if (i == shown.front() && text.empty())
        line = std::string(widths[i], ' ');
      else
        append_cell(line, text, widths[i], columns_[i].side);
    }
    finish_line(out, line);
  };
  add_line([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return out;
}

std::string aligned_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::size_t width = 0;
  for (const auto& [name, value] : pairs) {
    if (!value.empty()) width = std::max(width, width_of(one_line(name)));
  }
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (value.empty()) continue;
    const std::string shown = one_line(name);
    out += shown + std::string(width - width_of(shown) + 2, ' ') + one_line(value) + '\n';
  }
  return out;
}

}  // namespace hpcbatch
