#include "documents/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace hpcbatch {
namespace {

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::vector<std::size_t> next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row.back();
}

/// `oom` is one of `oom_task`.
bool is_part_of(std::string_view word, std::string_view whole) {
  const auto is_between = [](char c) { return c == '_' || c == '-' || c == '.' || c == '/'; };
  for (std::size_t at = whole.find(word); at != std::string_view::npos;
       at = whole.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || is_between(whole[at - 1])) && (end == whole.size() || is_between(whole[end])))
      return true;
  }
  return false;
}

/// Without the dashes of an option.
std::size_t letters_of(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string_view::npos ? 0 : word.size() - first;
}

// Of less nobody can tell what it is the beginning of.
constexpr std::size_t kShortestPart = 3;

std::string shortest_that_begins_with(std::string_view word,
                                      const std::vector<std::string>& known) {
  std::string found;
  for (const std::string& candidate : known) {
    if (letters_of(word) < kShortestPart || !candidate.starts_with(word)) continue;
    if (found.empty() || candidate.size() < found.size()) found = candidate;
  }
  return found;
}

/// The only one of which the word is a part; else empty.
std::string the_only_with(std::string_view word, const std::vector<std::string>& known) {
  std::string found;
  for (const std::string& candidate : known) {
    if (letters_of(word) < kShortestPart || !is_part_of(word, candidate)) continue;
    if (!found.empty()) return "";
    found = candidate;
  }
  return found;
}

}  // namespace

std::string nearest_spelling(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > 64) return "";
  std::string whole = shortest_that_begins_with(word, known);
  if (!whole.empty()) return whole;
  std::string best;
  // One letter in three may be wrong.
  std::size_t least = std::max<std::size_t>(1, (letters_of(word) + 1) / 3);
  for (const std::string& candidate : known) {
    const std::size_t far = distance(word, candidate);
    if (far < least || (best.empty() && far == least)) {
      best = candidate;
      least = far;
    }
  }
  return best.empty() ? the_only_with(word, known) : best;
}

std::string spelling_hint(std::string_view word, const std::vector<std::string>& known) {
  if (const std::string near = nearest_spelling(word, known); !near.empty()) {
    return fmt::format("; did you mean '{}'?", near);
  }
  if (known.empty()) return "";
  return fmt::format("; known are {}", fmt::join(known, ", "));
}

std::string meant_elsewhere(std::span<const NamedElsewhere> names, std::string_view word,
                            const std::function<bool(std::string_view)>& may_be) {
  const std::string wanted = fmt::format(" {} ", word);
  if (word.empty() || word.find(' ') != std::string_view::npos) return "";
  for (const NamedElsewhere& name : names) {
    if (fmt::format(" {} ", name.theirs).find(wanted) != std::string::npos && may_be(name.ours))
      return std::string(name.ours);
  }
  return "";
}

}  // namespace hpcbatch
