#include "cli/show/listings.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "model/index_set.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>
#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::size_t kTasksOnAPage = 100'000;

/// The neighbours that a line stands for; nothing where it is no task of an array.
std::optional<IndexRange> range_of(const std::string& id) {
  const std::size_t dot = id.find('.');
  const auto indices =
      dot == std::string::npos ? std::nullopt : parse_index_set(id.substr(dot + 1));
  return indices ? std::optional(indices->ranges().front()) : std::nullopt;
}

std::string array_of(const std::string& id) {
  return id.substr(0, id.find('.'));
}

bool look_alike(const boost::json::object& a, const boost::json::object& b) {
  for (const char* key : {"state", "exit_code", "failure", "name", "tool"}) {
    if (text_at(a, key) != text_at(b, key)) return false;
  }
  return !a.contains("item") && !b.contains("item");
}

constexpr std::size_t kBar = 10;
constexpr std::size_t kShortBar = 6;

bool is_plain_ascii(char letter) {
  return letter > ' ' && letter < 0x7f;
}

std::string elapsed(double seconds) {
  return show_duration(std::chrono::seconds(static_cast<std::int64_t>(std::max(0.0, seconds))));
}

/// Of words as a program's encoded arguments, whose end nobody reads, the beginning.
std::string with_short_words(std::string_view text) {
  constexpr std::size_t kLongest = 80, kBegin = 20;
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    // Of a path people read the end, too; a character of several bytes must not be cut.
    const bool is_long = word.size() > kLongest &&
                         std::isalnum(static_cast<unsigned char>(word[0])) &&
                         std::all_of(word.begin(), word.end(), is_plain_ascii);
    out += is_long ? std::string(word.substr(0, kBegin)) + "..." : std::string(word);
    if (end < text.size()) out += ' ';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Of one that is called as a script or program in its command: what stands behind that.
std::optional<std::string> arguments_of(const json::object& submission, std::string_view name) {
  const json::array* words = array_at(submission, "command");
  if (words == nullptr || name.empty()) return std::nullopt;
  const auto is_it = [name](const json::value& word) {
    if (!word.is_string()) return false;
    const std::string_view text = word.get_string();
    return text == name || (text.ends_with(name) && text[text.size() - name.size() - 1] == '/');
  };
  const auto at = std::find_if(words->begin(), words->end(), is_it);
  if (at == words->end()) return std::nullopt;
  return command_at({{"command", json::array(at + 1, words->end())}}, "command");
}

/// What it is called, and what it runs.
std::string what_of(const json::object& submission) {
  std::string what = text_at(submission, "name");
  std::string runs = text_at(submission, "tool");
  if (const auto arguments = arguments_of(submission, what); runs.empty() && arguments) {
    const bool is_cut = flag_at(submission, "command_cut");
    return what + (arguments->empty() ? "" : " ") + with_short_words(*arguments) +
           (is_cut ? " ..." : "");
  }
  if (runs.empty()) runs = command_at(submission, "command");
  if (flag_at(submission, "command_cut")) runs += " ...";
  if (!runs.empty() && runs != what) what += (what.empty() ? "" : ": ") + with_short_words(runs);
  return what;
}

std::string count_of_many(const json::object& submission, std::string_view state) {
  const json::object* counts = object_at(submission, "counts");
  const bool is_one = number_at(submission, "total") == 1;
  const double count = counts == nullptr ? 0 : number_at(*counts, state);
  return is_one || count == 0 ? "" : whole(count);
}

/// `[##..]`, `2/4`: of many.
std::string bar_of(const json::object& submission, std::size_t letters) {
  const json::object* counts = object_at(submission, "counts");
  return number_at(submission, "total") == 1
             ? ""
             : "[" + progress_bar(counts == nullptr ? json::object() : *counts, letters) + "]";
}

std::string done_of(const json::object& submission, std::string_view key) {
  const json::object* counts = object_at(submission, "counts");
  return number_at(submission, key) == 1
             ? ""
             : (counts == nullptr ? "" : text_at(*counts, "done")) + "/" + text_at(submission, key);
}

std::string percent_at(const json::object& object, std::string_view key) {
  if (!object.contains(key)) return "";
  return std::to_string(std::lround(number_at(object, key) * 100)) + " %";
}

std::string words_on(const json::object& shape, std::string_view key) {
  const std::string by = text_at(shape, key);
  if (by == "model") return "by a model of " + text_at(shape, "from") + " waits";
  if (by != "queue") return text_at(shape, "message");
  return shape.contains("wait_50") ? "as its queue looks"
                                   : "as its queue looks, should others run as long as they may";
}

}  // namespace

std::optional<IndexSet> indices_of(const std::string& id, const std::string& submission) {
  const std::size_t dot = id.find('.');
  if (dot == std::string::npos || id.compare(0, dot, submission) != 0) return std::nullopt;
  return parse_index_set(id.substr(dot + 1));
}

IndexSet indices_where(const AskEngine& ask, const std::string& submission,
                       const std::string& question) {
  IndexSet all;
  const std::string target =
      "/v1/tasks?limit=" + std::to_string(kTasksOnAPage) + "&array=" + submission + "&" + question;
  std::string before;
  for (;;) {
    std::string page = target;
    if (!before.empty()) page.append("&before=").append(before);
    const json::object answer = ask(page);
    const Objects tasks = objects_at(answer, "tasks");
    for (const json::object& task : tasks) {
      if (const auto indices = indices_of(text_at(task, "id"), submission)) all.add(*indices);
    }
    if (tasks.size() < kTasksOnAPage) return all;
    before = text_at(tasks.back(), "id");
  }
}

void TaskLines::add(const boost::json::object& task) {
  const std::string id = text_at(task, "id"), last = text_at(last_, "id");
  const auto below = range_of(id), above = range_of(last);
  const bool touches = below && above && array_of(id) == array_of(last) &&
                       below->last + 1 == above->first && look_alike(task, last_);
  if (!touches) {
    finish();
    last_ = task;
    return;
  }
  last_["id"] =
      array_of(id) + "." + std::to_string(below->first) + "-" + std::to_string(above->last);
  last_["tasks"] = number_at(last_, "tasks") + number_at(task, "tasks");
}

void TaskLines::finish() {
  if (!last_.empty()) lines_.push_back(std::exchange(last_, {}));
}

std::vector<ListColumn> task_columns() {
  using Side = Table::Side;
  return {{"id", "ID"},
          {"state", "STATE"},
          {"tasks", "TASKS", Side::Right,
           [](const json::object& task, std::string_view key) {
             return number_at(task, key) == 1 ? "" : text_at(task, key);
           }},
          {"exit_code", "EXIT", Side::Right},
          {"failure", "FAILURE", Side::Left,
           [](const json::object& task, std::string_view key) {
             const std::string failure = text_at(task, key);
             return failure == "ok" ? "" : failure;
           }},
          {"item", "ITEM"},
          {"name", "NAME", Side::Left, [](const json::object& task, std::string_view key) {
             return text_at(task, text_at(task, key).empty() ? "tool" : key);
           }}};
}

Table TaskLines::table() const {
  return list_table(task_columns(), Objects(lines_.begin(), lines_.end()));
}

std::string progress_bar(const json::object& counts, std::size_t letters) {
  struct Part {
    char letter;
    double tasks;
    std::size_t shown;
  };
  std::array parts = {Part{'#', number_at(counts, "done"), 0},
                      Part{'x', number_at(counts, "failed"), 0},
                      Part{'-', number_at(counts, "cancelled"), 0},
                      Part{'>',
                           number_at(counts, "running") + number_at(counts, "finishing") +
                               number_at(counts, "unknown"),
                           0},
                      Part{'.', number_at(counts, "waiting") + number_at(counts, "held"), 0}};
  double total = 0;
  for (const Part& part : parts) total += part.tasks;
  if (total <= 0) return std::string(letters, '.');
  std::size_t used = 0;
  for (Part& part : parts) {
    if (part.tasks <= 0) continue;
    part.shown = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::floor(part.tasks / total * static_cast<double>(letters))));
    used += part.shown;
  }
  // What rounding has left or taken is the largest part's.
  Part& largest = *std::max_element(parts.begin(), parts.end(),
                                    [](const Part& a, const Part& b) { return a.tasks < b.tasks; });
  largest.shown = largest.shown + letters - used;
  std::string bar;
  for (const Part& part : parts) bar += std::string(part.shown, part.letter);
  return bar;
}

Table submission_table(const Objects& submissions, double now) {
  return list_table(submission_columns(submissions, now), submissions);
}

std::vector<ListColumn> submission_columns(const Objects& submissions, double now) {
  using Side = Table::Side;
  const auto any = [&](const auto& is) {
    return std::any_of(submissions.begin(), submissions.end(), is);
  };
  const bool are_of_several = any([&](const json::object& one) {
    return text_at(one, "client") != text_at(submissions.front(), "client");
  });
  // A column more leaves less room for what they are.
  const std::size_t bar =
      any([](const json::object& one) { return !count_of_many(one, "cancelled").empty(); })
          ? kShortBar
          : kBar;
  return {{"id", "ID"},
          {"state", "STATE"},
          {"counts", "PROGRESS", Side::Left,
           [bar](const json::object& one, std::string_view) { return bar_of(one, bar); }},
          {"total", "DONE", Side::Right, done_of},
          {"failed", "FAILED", Side::Right, count_of_many},
          {"cancelled", "CANCELLED", Side::Right, count_of_many},
          {"submitted_at", "AGE", Side::Right,
           [now](const json::object& one, std::string_view key) {
             return elapsed(now - number_at(one, key));
           }},
          {"started_at", "RUN", Side::Right,
           [now](const json::object& one, std::string_view key) {
             const double end = one.contains("ended_at") ? number_at(one, "ended_at") : now;
             return one.contains(key) ? elapsed(end - number_at(one, key)) : "";
           }},
          {"client", "WHO", Side::Left,
           [are_of_several](const json::object& one, std::string_view key) {
             return are_of_several ? text_at(one, key) : "";
           }},
          {"name", "WHAT", Side::Left,
           [](const json::object& one, std::string_view) { return what_of(one); }}};
}

const Listing& listing_of(InventoryCommand::Kind kind) {
  using Side = Table::Side;
  static const std::array<Listing, 4> kListings{Listing{"sites",
                                                        {{"name", "SITE"},
                                                         {"state", "STATE"},
                                                         {"scheduler", "SCHEDULER"},
                                                         {"transport", "TRANSPORT"},
                                                         {"queued", "QUEUED", Side::Right},
                                                         {"running", "RUNNING", Side::Right},
                                                         {"message", "MESSAGE"}}},
                                                Listing{"allocations",
                                                        {{"name", "ALLOCATION"},
                                                         {"site", "SITE"},
                                                         {"shape", "SHAPE"},
                                                         {"state", "STATE"},
                                                         {"batch_id", "BATCH"},
                                                         {"nodes", "NODES", Side::Right},
                                                         {"submitted_at", "SUBMITTED"},
                                                         {"started_at", "STARTED"},
                                                         {"ends_at", "ENDS"},
                                                         {"message", "MESSAGE"}}},
                                                Listing{"pilots",
                                                        {{"name", "PILOT"},
                                                         {"site", "SITE"},
                                                         {"node", "NODE"},
                                                         {"state", "STATE"},
                                                         {"tasks", "TASKS", Side::Right},
                                                         {"cpus", "CPUS", Side::Right},
                                                         {"memory", "MEMORY", Side::Right},
                                                         {"gpus", "GPUS"},
                                                         {"ends_at", "ENDS"}}},
                                                Listing{"tools",
                                                        {{"name", "TOOL"},
                                                         {"version", "VERSION"},
                                                         {"interpreter", "INTERPRETER"},
                                                         {"description", "DESCRIPTION"},
                                                         {"error", "ERROR"}}}};
  return kListings.at(static_cast<std::size_t>(kind));
}

Table inventory_table(InventoryCommand::Kind kind, const Objects& things) {
  return list_table(listing_of(kind).columns, things);
}

Table check_table(const json::array& checks) {
  return list_table({{"ok", "", Table::Side::Left,
                      [](const json::object& check, std::string_view key) {
                        return std::string(flag_at(check, key) ? "ok" : "BAD");
                      }},
                     {"check", "CHECK"},
                     {"text", "RESULT"}},
                    objects_in(checks));
}

std::string waits_text(const json::object& waits, std::optional<std::size_t> room) {
  using Side = Table::Side;
  const Objects shapes = objects_at(waits, "shapes");
  if (shapes.empty()) return "no site has a shape to wait for\n";
  std::string text = list_table({{"site", "SITE"},
                                 {"shape", "SHAPE"},
                                 {"waits", "WAITS", Side::Right},
                                 {"wait_50", "50 % IN", Side::Right, duration_at},
                                 {"wait_90", "90 % IN", Side::Right, duration_at},
                                 {"start_50", "50 % BY", Side::Left, soon_at},
                                 {"start_90", "90 % BY", Side::Left, soon_at},
                                 {"by", "", Side::Left, words_on}},
                                shapes)
                         .text(room, Table::Last::Wrapped);
  const Objects queued = objects_at(waits, "queued");
  if (queued.empty()) return text;
  return text + "\n" +
         list_table({{"name", "ALLOCATION"},
                     {"batch_id", "BATCH ID"},
                     {"site", "SITE"},
                     {"shape", "SHAPE"},
                     {"waited", "WAITED", Side::Right, duration_at},
                     {"start_50", "50 % BY", Side::Left,
                      [](const json::object& one, std::string_view key) {
                        return one.contains("by") ? soon_at(one, key) : "not known";
                      }},
                     {"start_90", "90 % BY", Side::Left,
                      [](const json::object& one, std::string_view key) {
                        return one.contains("by") ? soon_at(one, key) : "";
                      }}},
                    queued)
             .text(room);
}

std::string waits_score_text(const json::object& waits, std::optional<std::size_t> room) {
  using Side = Table::Side;
  json::array scores;
  for (const json::object& shape : objects_at(waits, "shapes")) {
    for (json::object score : objects_at(shape, "told")) {
      score["site"] = shape.at("site");
      score["shape"] = shape.at("shape");
      scores.emplace_back(std::move(score));
    }
  }
  if (scores.empty())
    return "since the engine's start no allocation has started of which it had been told when\n";
  return list_table({{"site", "SITE"},
                     {"shape", "SHAPE"},
                     {"by", "BY"},
                     {"waits", "TOLD", Side::Right},
                     {"by_50", "BY 50 %", Side::Right, percent_at},
                     {"by_90", "BY 90 %", Side::Right, percent_at},
                     {"log_mse", "MSE LOG10", Side::Right,
                      [](const json::object& score, std::string_view key) {
                        return score.contains(key) ? fmt::format("{:.2f}", number_at(score, key))
                                                   : "";
                      }},
                     {"within_2x", "WITHIN 2X", Side::Right, percent_at},
                     {"within_3x", "WITHIN 3X", Side::Right, percent_at}},
                    objects_in(scores))
      .text(room);
}

std::string joblog_line(std::uint64_t number, const json::object& task) {
  const std::string node = text_at(task, "node");
  const std::string code = text_at(task, "exit_code");
  const std::string signal = text_at(task, "signal");
  std::string line = std::to_string(number) + "\t" + (node.empty() ? "-" : node) + "\t";
  line += fmt::format("{:.3f}\t{:.3f}\t0\t0\t", number_at(task, "started_at"),
                      number_at(task, "run_s"));
  line += (code.empty() ? "-1" : code) + "\t" + (signal.empty() ? "0" : signal) + "\t";
  for (const char c : command_at(task, "command"))
    line += c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
  return line;
}

}  // namespace hpcbatch
