#include "api/read/places_meant.hpp"

#include "api/read/own_paths.hpp"
#include "api/read/read_items.hpp"
#include "documents/spelling.hpp"
#include "model/placeholders.hpp"
#include "programs/program_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

namespace hpcbatch {
namespace {

constexpr std::string_view kInAScript = "a text that is meant as it stands belongs into a script";

/// What all tasks share and is filled in for each, but for the command: there `{index}` and `{id}`
/// are known, too.
std::vector<std::string_view> paths_of(const TaskRequest& task) {
  std::vector<std::string_view> all{task.standard_output, task.standard_error};
  if (task.items.empty() && !is_array(task)) return all;
  all.insert(all.end(), {task.standard_input, task.name});
  if (task.directory) all.emplace_back(*task.directory);
  for (const auto& [name, paths] : task.inputs) all.insert(all.end(), paths.begin(), paths.end());
  for (const auto& [name, path] : task.outputs) all.emplace_back(path);
  return all;
}

/// A name that is no placeholder has a number.
void check_odd_names(const TaskRequest& task, const Item& item, const std::string& what) {
  std::vector<std::string_view> texts = paths_of(task);
  texts.insert(texts.end(), task.command.begin(), task.command.end());
  std::size_t number = 0;
  for (const auto& [name, value] : item.columns()) {
    ++number;
    const std::string place = "{" + name + "}";
    if (columns_asked_for(place).size() == 1) continue;
    for (const std::string_view text : texts) {
      if (text.find(place) != std::string_view::npos)
        throw BadRequest(
            fmt::format("{}: '{}' is no placeholder: a name in one has letters, "
                        "digits, '_' and '-' only; write {{{}}} for that column",
                        what, place, number));
    }
  }
}

/// `{sampel/.}` asks for the column sampel.
std::string_view name_in(std::string_view place) {
  const auto names = columns_asked_for(place);
  return names.empty() ? std::string_view{} : names.front();
}

std::string why_stray(std::string_view place, const TaskRequest& task, const Item& item,
                      bool is_in_command) {
  const std::string_view name = name_in(place);
  if (is_in_command && (name == "index" || name == "id" || place == "{#}")) {
    const bool is_id = name == "id";
    return fmt::format("'{}' is filled into paths only; in a command write {}", place,
                       is_id                ? "$HPCBATCH_TASK_ID, which a shell reads"
                       : task.items.empty() ? "$HPCBATCH_TASK_INDEX, which a shell reads"
                                            : "{#} for the index");
  }
  if (task.items.empty())
    return fmt::format(
        "'{}' stands for nothing that a task without items has; {} for a file of its "
        "own",
        place, is_array(task) ? "write {index} or {id}" : "write {id}");
  if (item.columns().empty())
    return fmt::format(
        "'{}' stands for nothing: the items are single texts, and {{}} is the item; names and "
        "numbers stand for columns (--columns, --header, JSON lines), {}",
        place, kInAScript);
  if (name.empty()) return fmt::format("'{}' is no placeholder; {}", place, kInAScript);
  std::vector<std::string> names;
  for (const auto& [known, value] : item.columns()) names.push_back(known);
  if (name.find_first_not_of("0123456789") == std::string_view::npos)
    return fmt::format("'{{{}}}' stands for a column, and the items have {}; {}", name,
                       names.size(), kInAScript);
  const std::string near = nearest_spelling(std::string(name), names);
  return fmt::format(
      "'{{{}}}' is no column of the items, which have {}{}", name, fmt::join(names, ", "),
      near.empty() ? fmt::format("; {}", kInAScript) : "; did you mean '{" + near + "}'?");
}

void check_command(const TaskRequest& task, const Item& item, const std::string& what) {
  if (task.items.empty() && !is_array(task)) return;
  for (std::size_t at = 0; at < task.command.size(); ++at) {
    std::string_view stray;
    if (!task.items.empty()) {
      const auto all = stray_places(task.command[at], item, {});
      if (!all.empty()) stray = all.front();
    } else {
      for (const std::string_view place : {"{index}", "{id}", "{#}"}) {
        const std::size_t found = task.command[at].find(place);
        const bool is_a_shells =
            found > 0 && found != std::string::npos && task.command[at][found - 1] == '$';
        if (found != std::string::npos && !is_a_shells) stray = place;
      }
    }
    if (!stray.empty() && !is_code_of_no_shell(task.command, at))
      throw BadRequest(what + ": " + why_stray(stray, task, item, true));
  }
}

/// Items that lack a field which the first one has.
void check_all_have(const TaskRequest& task, const std::set<std::string_view>& asked,
                    const std::string& what) {
  const Item first = item_at(task, 1);
  for (std::size_t i = 2; i <= task.items.size() && !asked.empty(); ++i) {
    const Item item = item_at(task, i);
    for (const std::string_view name : asked) {
      if (first.column(name) != nullptr && item.column(name) == nullptr)
        throw BadRequest(fmt::format("{}: item {} has no column '{}': {}", what, i, name,
                                     item.text().substr(0, 200)));
    }
  }
}

}  // namespace

void check_places(const TaskRequest& task, const std::string& what) {
  // By --array a path has the index for the item.
  const Item item = task.items.empty() && is_array(task) ? Item("1") : example_item(task);
  if (task.items_have_columns) check_odd_names(task, item, what);
  check_command(task, item, what);
  std::set<std::string_view> asked;
  for (const std::string_view text : paths_of(task)) {
    if (const auto stray = stray_places(text, item, {"index", "id"}); !stray.empty())
      throw BadRequest(what + ": " + why_stray(stray.front(), task, item, false));
    for (const std::string_view name : columns_asked_for(text)) asked.insert(name);
  }
  if (!task.items_have_columns) return;
  for (const std::string& word : task.command) {
    for (const std::string_view name : columns_asked_for(word)) asked.insert(name);
  }
  check_all_have(task, asked, what);
}

}  // namespace hpcbatch
