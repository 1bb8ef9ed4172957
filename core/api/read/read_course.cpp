#include "api/read/read_course.hpp"

#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "documents/task_values.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace hpcbatch {

namespace json = boost::json;

namespace {

struct Named {
  Selection selection;
  bool is_users_index{false};
};

/// `12`, `12.3`, or `12_3` with the index that its user gave it.
Named named_in(std::string text) {
  const std::size_t line = text.find('_');
  if (line != std::string::npos) text[line] = '.';
  return {parse_selection(text), line != std::string::npos};
}

}  // namespace

void add_dependencies(const json::value& value, const std::string& what, Dependency::Kind kind,
                      NewArray& array) {
  for (const std::string& text : texts_of(value, what)) {
    const bool is_sibling = text.starts_with('#');
    const std::size_t end = kind == Dependency::Kind::Start ? delay_at(text) : text.size();
    const Named named = named_in(text.substr(is_sibling ? 1 : 0, end - (is_sibling ? 1 : 0)));
    const Selection& selection = named.selection;
    Dependency dependency{
        .array = selection.array, .kind = kind, .is_users_index = named.is_users_index};
    if (end < text.size()) dependency.delay = *parse_duration(text.substr(end + 1));
    if (is_sibling) {
      if (selection.array.value > std::numeric_limits<std::uint32_t>::max())
        throw BadRequest(fmt::format("{} '{}': a submission has no such task", what, text));
      dependency.array = {};
      dependency.sibling = static_cast<std::uint32_t>(selection.array.value);
    }
    if (selection.indices) {
      if (selection.indices->size() != 1)
        throw BadRequest(fmt::format("{} '{}' must be one array or one task", what, text));
      if (kind == Dependency::Kind::EachSuccess)
        throw BadRequest(fmt::format("{} '{}' must be a whole array", what, text));
      dependency.index = selection.indices->ranges().front().first;
    }
    array.after.push_back(dependency);
  }
}

Time moment_of(const json::value& value, const std::string& where) {
  constexpr double kFirst = 1e8, kLast = 1e11;
  const double seconds = value.is_number() ? value.to_number<double>() : 0;
  if (seconds < kFirst || seconds > kLast)
    throw BadRequest(where + " must be a moment: seconds since 1970, or as 2026-01-31T12:00");
  return Time(std::chrono::round<Duration>(std::chrono::duration<double>(seconds)));
}

std::uint32_t factor_of(const json::value& value, const std::string& where) {
  constexpr double kMost = 100;
  const double factor = value.is_number() ? value.to_number<double>() : 0;
  if (factor < 1 || factor > kMost) throw BadRequest(where + " must be a factor from 1 to 100");
  return static_cast<std::uint32_t>(std::lround(factor * 100));
}

const std::string& singleton_of(const std::string& name, const std::string& what) {
  if (name.empty())
    throw BadRequest(what + ": 'singleton' goes with a 'name', which tells who has to end before");
  // The store keeps it in a line of its own.
  if (name.find('\n') != std::string::npos)
    throw BadRequest(what + ": with 'singleton' a 'name' must be one line");
  return name;
}

void check_course(const NewArray& array, const std::string& what) {
  const Course& course = array.course.get();
  if (course.begin && course.deadline && *course.begin >= *course.deadline)
    throw BadRequest(what +
                     ": its 'begin' is not before its 'deadline', so that it could never run");
  if (!course.any_of_after) return;
  if (!course.singleton.empty())
    throw BadRequest(what + ": 'singleton' is one more that it waits for; leave 'after_one' out");
  const bool has_pairs = std::any_of(array.after.begin(), array.after.end(), [](const auto& on) {
    return on.kind == Dependency::Kind::EachSuccess;
  });
  if (has_pairs)
    throw BadRequest(what + ": 'after_each' pairs tasks, and goes without 'after_one'");
}

}  // namespace hpcbatch
