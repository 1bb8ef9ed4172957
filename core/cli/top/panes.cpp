#include "cli/top/panes.hpp"

#include "cli/client/http_client.hpp"
#include "documents/texts.hpp"
#include "failure/failure.hpp"
#include "model/task.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace hpcbatch::top {
namespace {

namespace json = boost::json;

std::vector<std::string> words_of_filter(const std::string& filter) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < filter.size();) {
    const std::size_t begin = filter.find_first_not_of(' ', at);
    if (begin == std::string::npos) break;
    at = std::min(filter.find(' ', begin), filter.size());
    words.push_back(filter.substr(begin, at - begin));
  }
  return words;
}

bool is_id(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

constexpr std::string_view kName = "name:";

/// What the engine looks for itself, so that it is found on every page; else empty.
std::string question_of(Pane pane, const std::string& word) {
  if (pane == Pane::Pilots || pane == Pane::Waits) return "";
  if (parse_task_state(word)) return "&state=" + encode_part(word);
  if (parse_failure_choice(word)) return "&failure=" + encode_part(word);
  if (pane == Pane::Tasks && is_id(word)) return "&array=" + word;
  if (pane == Pane::Submissions && word.starts_with(kName) && word.size() > kName.size())
    return "&name=" + encode_part("*" + word.substr(kName.size()) + "*");
  return "";
}

struct Numbers {
  std::uint32_t first{0}, last{0};
};
/// `12-14`, `12`.
std::optional<Numbers> numbers_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = number_in<std::uint32_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : number_in<std::uint32_t>(text.substr(dash + 1));
  return first && last ? std::optional(Numbers{*first, *last}) : std::nullopt;
}

/// Where an id belongs among others: submission and task.
std::optional<std::array<std::uint32_t, 2>> place_of(const std::string& id) {
  const std::size_t dot = id.find('.');
  const auto array = numbers_of(std::string_view(id).substr(0, dot));
  if (!array || dot == std::string::npos)
    return array ? std::optional(std::array{array->first, std::uint32_t{0}}) : std::nullopt;
  const auto task = numbers_of(std::string_view(id).substr(dot + 1));
  return task ? std::optional(std::array{array->first, task->first}) : std::nullopt;
}

/// Where a list begins that is to show that and what is older.
std::string above(const std::string& within) {
  const std::size_t dot = within.find('.');
  const bool is_task = dot != std::string::npos;
  const auto numbers = numbers_of(std::string_view(within).substr(is_task ? dot + 1 : 0));
  if (!numbers) return "";
  const std::string behind = std::to_string(std::uint64_t{numbers->last} + 1);
  return is_task ? within.substr(0, dot + 1) + behind : behind;
}

/// Whether a row is older than what the list is about.
bool is_below(const std::string& id, const std::string& within) {
  const std::size_t dot = within.find('.'), own = id.find('.');
  const bool is_task = dot != std::string::npos;
  const auto wanted = numbers_of(std::string_view(within).substr(is_task ? dot + 1 : 0));
  const auto numbers =
      numbers_of(std::string_view(id).substr(is_task && own != std::string::npos ? own + 1 : 0));
  return wanted && numbers && numbers->last < wanted->first;
}

/// Whether a value of the row has the word in it.
bool has_word(const json::object& row, const std::string& word) {
  return std::any_of(row.begin(), row.end(), [&](const auto& entry) {
    return lower_case(text_at(row, entry.key())).find(word) != std::string::npos;
  });
}

const json::value* value_of(const json::object& row, std::string_view key) {
  if (const json::value* value = row.if_contains(key)) return value;
  const json::object* counts = object_at(row, "counts");
  return counts == nullptr ? nullptr : counts->if_contains(key);
}

bool is_less(const json::object& a, const json::object& b, const std::string& key) {
  const json::value* left = value_of(a, key);
  const json::value* right = value_of(b, key);
  if (left == nullptr || right == nullptr) return left == nullptr && right != nullptr;
  if (left->is_number() && right->is_number())
    return left->to_number<double>() < right->to_number<double>();
  const std::string first = text_at(a, key), second = text_at(b, key);
  if (const auto one = place_of(first), other = place_of(second); one && other)
    return *one < *other;
  return first < second;
}

/// Where a batch job stands in the queue, and what one would meet that is asked for now.
std::vector<ListColumn> wait_columns() {
  using Side = Table::Side;
  const auto moment = [](const json::object& row, std::string_view key) {
    const std::string text = soon_at(row, key);
    return text.empty() && key == "start_50" ? std::string("not known") : text;
  };
  return {{"name", "ALLOCATION", Side::Left,
           [](const json::object& row, std::string_view key) {
             const std::string name = text_at(row, key);
             return name.empty() ? std::string("a new one") : name;
           }},
          {"site", "SITE"},
          {"shape", "SHAPE"},
          {"batch_id", "BATCH ID"},
          {"waited", "WAITED", Side::Right, duration_at},
          {"start_50", "50 % BY", Side::Left, moment},
          {"start_90", "90 % BY", Side::Left, moment},
          {"message", "", Side::Left}};
}

/// Those that a narrow terminal does without, the first first.
std::vector<std::string_view> less_wanted(Pane pane) {
  switch (pane) {
    case Pane::Submissions:
      return {"client", "cancelled", "started_at", "counts", "submitted_at", "failed"};
    case Pane::Tasks:
      return {"exit_code", "tasks", "failure", "item"};
    case Pane::Pilots:
      return {"gpus", "memory", "ends_at", "site", "cpus"};
    case Pane::Waits:
      return {"batch_id", "message", "site", "waited", "start_90"};
  }
  return {};
}

}  // namespace

const char* name_of(Pane pane) {
  constexpr std::array kNames = {"Submissions", "Tasks", "Pilots", "Waits"};
  return kNames.at(static_cast<std::size_t>(pane));
}

bool is_range(const std::string& id) {
  return id.find('-') != std::string::npos;
}

std::string target_of(Pane pane, const ListView& list) {
  if (pane == Pane::Pilots) return "/v1/pilots";
  if (pane == Pane::Waits) return "/v1/waits";
  std::string target = "limit=" + std::to_string(kRowsAPage);
  std::string before = list.befores.empty() ? "" : list.befores.back();
  const std::string array = list.within.substr(0, list.within.find('.'));
  if (pane == Pane::Tasks && !list.within.empty()) target += "&array=" + array;
  if (is_range(list.within) && before.empty()) before = above(list.within);
  if (pane == Pane::Tasks && is_range(list.within)) target += "&apart=1";
  if (pane == Pane::Submissions && list.within.empty()) target += "&per=submit";
  for (const std::string& word : words_of_filter(list.filter)) target += question_of(pane, word);
  if (!before.empty()) target += "&before=" + before;
  return (pane == Pane::Tasks ? "/v1/tasks?" : "/v1/arrays?") + target;
}

std::string id_of(Pane pane, const json::object& row) {
  if (pane == Pane::Waits && !row.contains("name"))
    return text_at(row, "site") + "/" + text_at(row, "shape");
  return text_at(row, pane == Pane::Submissions || pane == Pane::Tasks ? "id" : "name");
}

void take_rows(Pane pane, ListView& list, const json::object& answer) {
  list.rows.clear();
  list.next.clear();
  if (pane == Pane::Waits) {
    for (const char* key : {"queued", "shapes"}) {
      for (const json::object& row : objects_at(answer, key)) list.rows.emplace_back(row);
    }
    return;
  }
  constexpr std::array kKeys = {"arrays", "tasks", "pilots"};
  const Objects rows = objects_at(answer, kKeys.at(static_cast<std::size_t>(pane)));
  bool is_past = false;
  for (const json::object& row : rows) {
    is_past = is_past || (is_range(list.within) && is_below(id_of(pane, row), list.within));
    if (!is_past) list.rows.emplace_back(row);
  }
  if (is_past) return;
  if (pane == Pane::Submissions) list.next = text_at(answer, "next");
  if (pane == Pane::Tasks && rows.size() >= kRowsAPage) list.next = id_of(pane, rows.back());
}

Objects rows_of(Pane pane, const ListView& list) {
  Objects rows = objects_in(list.rows);
  for (const std::string& word : words_of_filter(list.filter)) {
    if (!question_of(pane, word).empty()) continue;
    std::erase_if(rows, [found = lower_case(word)](const json::object& row) {
      return !has_word(row, found);
    });
  }
  if (!list.sort.empty()) {
    std::stable_sort(rows.begin(), rows.end(), [&](const json::object& a, const json::object& b) {
      return list.is_descending ? is_less(b, a, list.sort) : is_less(a, b, list.sort);
    });
  }
  return rows;
}

std::vector<ListColumn> columns_of(Pane pane, const Objects& rows, double now) {
  switch (pane) {
    case Pane::Submissions:
      return submission_columns(rows, now);
    case Pane::Tasks:
      return task_columns();
    case Pane::Pilots:
      return listing_of(InventoryCommand::Kind::Pilots).columns;
    case Pane::Waits:
      return wait_columns();
  }
  return {};
}

std::vector<std::string> lines_of(const std::vector<ListColumn>& columns, Pane pane,
                                  const Objects& rows, std::size_t room) {
  std::vector<ListColumn> shown = columns;
  // The last column is cut where there is no room for it, but must still say something.
  constexpr std::size_t kOfLast = 16;
  for (const std::string_view key : less_wanted(pane)) {
    Table all = list_table(shown, rows);
    const std::size_t last = all.width_of_last();
    if (all.width() - last + std::min(last, kOfLast) <= room) break;
    std::erase_if(shown, [key](const ListColumn& column) { return column.key == key; });
  }
  const std::string text = list_table(shown, rows).text(room);
  const auto lines = hpcbatch::lines_of(text);
  return {lines.begin(), lines.end()};
}

json::array ids_of(const std::string& id) {
  const auto numbers = id.find('.') == std::string::npos ? numbers_of(id) : std::nullopt;
  if (!numbers) return {json::string(id)};
  json::array ids;
  for (std::uint64_t one = numbers->first; one <= numbers->last; ++one)
    ids.emplace_back(std::to_string(one));
  return ids;
}

}  // namespace hpcbatch::top
