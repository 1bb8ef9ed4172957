#include "cli/show/table.hpp"

#include "cli/show/terminal.hpp"
#include "documents/texts.hpp"
#include "model/check.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch {
namespace {

/// A text in fewer letters a line is no text.
constexpr std::size_t kReadable = 24;
constexpr std::size_t kBelow = 4;

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
  std::string out = show_text(text, text.size());
  for (std::size_t at = 0; (at = out.find('\t', at)) != std::string::npos;)
    out.replace(at, 1, "\\x09");
  return out;
}

void Table::add(std::vector<std::string> row) {
  HPCBATCH_CHECK(row.size() == columns_.size());
  for (std::string& text : row) text = one_line(text);
  rows_.push_back(std::move(row));
}

Table::Layout Table::layout() const {
  Layout layout{std::vector<std::size_t>(columns_.size(), 0), {}, 0};
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i)
      layout.widths[i] = std::max(layout.widths[i], width_of(row[i]));
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (layout.widths[i] == 0) continue;
    layout.widths[i] = std::max(layout.widths[i], width_of(columns_[i].title));
    layout.shown.push_back(i);
  }
  for (std::size_t i = 0; i + 1 < layout.shown.size(); ++i)
    layout.before_last += layout.widths[layout.shown[i]] + 2;
  return layout;
}

std::string Table::line(const Layout& layout, const std::vector<std::string>& cells,
                        std::optional<std::size_t> room, Last last) const {
  std::string line;
  for (const std::size_t i : layout.shown) {
    std::string text = cells[i];
    if (i == layout.shown.back() && room) {
      const std::size_t before = layout.before_last;
      if (last == Last::Cut) {
        text = cut(text, *room - std::min(before, *room));
      } else if (before + width_of(text) > *room) {
        const bool is_narrow = before + kReadable > *room;
        const std::size_t indent = is_narrow ? kBelow : before;
        text = wrapped(text, *room, indent, indent);
        if (is_narrow) {
          std::string out;
          finish_line(out, std::move(line));
          return out.append(kBelow, ' ').append(text).append("\n");
        }
      }
    }
    // An empty first cell must still push the others to their places.
    if (i == layout.shown.front() && text.empty())
      line = std::string(layout.widths[i], ' ');
    else
      append_cell(line, text, layout.widths[i], columns_[i].side);
  }
  std::string out;
  finish_line(out, std::move(line));
  return out;
}

std::string Table::text(std::optional<std::size_t> room, Last last) const {
  const Layout layout = this->layout();
  std::vector<std::string> titles;
  titles.reserve(columns_.size());
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string out = line(layout, titles, room, last);
  for (const auto& row : rows_) out += line(layout, row, room, last);
  return out;
}

std::size_t Table::width() const {
  const Layout layout = this->layout();
  return layout.shown.empty() ? 0 : layout.before_last + layout.widths[layout.shown.back()];
}

std::size_t Table::width_of_last() const {
  const Layout layout = this->layout();
  return layout.shown.empty() ? 0 : layout.widths[layout.shown.back()];
}

std::string aligned_pairs(const std::vector<NameAndValue>& pairs, std::optional<std::size_t> room) {
  std::size_t width = 0;
  for (const NameAndValue& pair : pairs) {
    if (!pair.value.empty()) width = std::max(width, width_of(one_line(pair.name)));
  }
  width += 2;
  std::string out;
  for (const NameAndValue& pair : pairs) {
    if (pair.value.empty()) continue;
    const std::string name = one_line(pair.name), value = one_line(pair.value);
    out += name + std::string(width - width_of(name), ' ');
    const bool breaks = pair.may_break && room && width + kReadable <= *room;
    out += (breaks ? wrapped(value, *room, width, width) : value) + '\n';
  }
  return out;
}

}  // namespace hpcbatch
