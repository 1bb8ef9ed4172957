#include "cli/tasks/left_items.hpp"

#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/items.hpp"
#include "cli/tasks/many.hpp"

#include <boost/json/array.hpp>

#include <cstdint>
#include <cstdio>
#include <utility>

#include <unistd.h>

namespace hpcbatch {

std::vector<std::string> items_to_compare(const boost::json::object& task) {
  std::vector<std::string> compared, columns;
  if (const boost::json::array* names = array_at(task, "columns")) {
    for (const boost::json::value& name : *names) columns.emplace_back(name.as_string());
  }
  if (const boost::json::array* items = array_at(task, "items")) {
    for (const boost::json::value& item : *items)
      compared.push_back(same_item(item_of(item, columns)));
  }
  return compared;
}

IndexSet left_items(const std::vector<std::string>& items,
                    std::unordered_map<std::string, std::size_t> times_done) {
  IndexSet left;
  std::uint32_t number = 0;
  for (const std::string& item : items) {
    ++number;
    const auto found = times_done.find(item);
    if (found == times_done.end() || found->second == 0)
      left.add(number);
    else
      --found->second;
  }
  return left;
}

LeftOut leave_out_done(boost::json::object& task, const ManyOptions& many,
                       std::unordered_map<std::string, std::size_t> times_done) {
  const std::vector<std::string> items = items_to_compare(task);
  const IndexSet not_done = left_items(items, std::move(times_done));
  IndexSet left = not_done;
  if (const boost::json::value* chosen = task.if_contains("array"))
    left = left.intersection(parse_index_set(std::string(chosen->as_string())).value_or(left));
  if (!left.empty()) task["array"] = to_string(left);
  bound_failures(task, many, left.size());
  return {items.size() - not_done.size(), left.size(), items.size()};
}

bool tell_left(const LeftOut& items, const std::string& submissions) {
  const std::string text = "hpcbatch: " + std::to_string(items.out) + " of " +
                           std::to_string(items.all) + " items ended well in " + submissions +
                           " and are left out" +
                           (items.left == 0 ? "; nothing is left to run" : "");
  std::fputs((lines_for(STDERR_FILENO, text, 2) + "\n").c_str(), stderr);
  return items.left > 0;
}

}  // namespace hpcbatch
