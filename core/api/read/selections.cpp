#include "api/read/selections.hpp"

#include "api/read/json_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

namespace hpcbatch {

namespace json = boost::json;

Selection parse_selection(const std::string& text) {
  Selection selection;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, selection.array.value);
  const auto bad = [&]() -> BadRequest {
    return BadRequest(fmt::format("'{}' is no id; ids look like 12, 12.345 or 12.1-99", text));
  };
  if (error != std::errc{} || selection.array.value == 0) throw bad();
  if (stop == end) return selection;
  if (*stop != '.') throw bad();
  selection.indices =
      parse_index_set(std::string_view(stop + 1, static_cast<std::size_t>(end - stop - 1)));
  if (!selection.indices) throw bad();
  return selection;
}

TaskId parse_task(const std::string& text) {
  const Selection selection = parse_selection(text);
  if (!selection.indices) return {selection.array, 0};
  if (selection.indices->contains(0))
    throw BadRequest(fmt::format(
        "'{}' is no task: ids count from 1; of an array from 0 the first task is .1", text));
  if (selection.indices->size() != 1)
    throw BadRequest(fmt::format("'{}' names several tasks where one is needed", text));
  return {selection.array, selection.indices->ranges().front().first};
}

std::vector<Selection> read_selections(const json::value& body) {
  const json::value* ids = body.get_object().if_contains("ids");
  if (!ids) throw BadRequest("'ids' is missing: a list like [\"12\", \"12.345\"]");
  std::vector<Selection> selections;
  for (const std::string& text : texts_of(*ids, "ids")) selections.push_back(parse_selection(text));
  if (selections.empty()) throw BadRequest("'ids' is empty: name at least one task");
  return selections;
}

}  // namespace hpcbatch
