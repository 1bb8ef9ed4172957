#include "cli/show/listings.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "model/index_set.hpp"
#include "model/quantities.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::size_t kTasksOnAPage = 100'000;

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
    const json::array* tasks = array_at(answer, "tasks");
    if (tasks == nullptr) return all;
    for (const json::value& task : *tasks) {
      if (!task.is_object()) continue;
      if (const auto indices = indices_of(text_at(task.get_object(), "id"), submission))
        all.add(*indices);
    }
    if (tasks->size() < kTasksOnAPage || !tasks->back().is_object()) return all;
    before = text_at(tasks->back().get_object(), "id");
  }
}

void add_task_row(Table& table, const boost::json::object& task) {
  const std::string tasks = text_at(task, "tasks");
  const std::string name = text_at(task, "name");
  table.add({text_at(task, "id"), text_at(task, "state"), tasks == "1" ? "" : tasks,
             text_at(task, "exit_code"),
             text_at(task, "failure") == "ok" ? "" : text_at(task, "failure"),
             text_at(task, "item"), name.empty() ? text_at(task, "tool") : name});
}

namespace {

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

}  // namespace

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
  if (last_.empty()) return;
  add_task_row(table_, last_);
  last_.clear();
  ++size_;
}

Table task_table() {
  using Side = Table::Side;
  return Table({{"ID"},
                {"STATE"},
                {"TASKS", Side::Right},
                {"EXIT", Side::Right},
                {"FAILURE"},
                {"ITEM"},
                {"NAME"}});
}

namespace {

namespace json = boost::json;

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

}  // namespace

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

namespace {

void name_clients(std::vector<json::object>& submissions) {
  const auto is_another = [&](const json::object& one) {
    return text_at(one, "client") != text_at(submissions.front(), "client");
  };
  if (std::none_of(submissions.begin(), submissions.end(), is_another)) return;
  for (json::object& one : submissions) one["who"] = text_at(one, "client");
}

std::string count_of_many(const json::object& submission, const char* state) {
  const json::object* counts = object_at(submission, "counts");
  const bool is_one = number_at(submission, "total") == 1;
  const double count = counts == nullptr ? 0 : number_at(*counts, state);
  return is_one || count == 0 ? "" : whole(count);
}

void add_submission_row(Table& table, const json::object& submission, std::size_t bar, double now) {
  static const json::object kNone;
  const json::object* found = object_at(submission, "counts");
  const json::object& counts = found == nullptr ? kNone : *found;
  const bool is_one = number_at(submission, "total") == 1;
  std::string run;
  if (submission.contains("started_at")) {
    const double end = submission.contains("ended_at") ? number_at(submission, "ended_at") : now;
    run = elapsed(end - number_at(submission, "started_at"));
  }
  table.add({text_at(submission, "id"), text_at(submission, "state"),
             is_one ? "" : "[" + progress_bar(counts, bar) + "]",
             is_one ? "" : text_at(counts, "done") + "/" + text_at(submission, "total"),
             count_of_many(submission, "failed"), count_of_many(submission, "cancelled"),
             elapsed(now - number_at(submission, "submitted_at")), run, text_at(submission, "who"),
             what_of(submission)});
}

}  // namespace

Table submission_table(std::vector<json::object> submissions, double now) {
  using Side = Table::Side;
  Table table({{"ID"},
               {"STATE"},
               {"PROGRESS"},
               {"DONE", Side::Right},
               {"FAILED", Side::Right},
               {"CANCELLED", Side::Right},
               {"AGE", Side::Right},
               {"RUN", Side::Right},
               {"WHO"},
               {"WHAT"}});
  if (!submissions.empty()) name_clients(submissions);
  // A column more leaves less room for what they are.
  const bool has_cancelled =
      std::any_of(submissions.begin(), submissions.end(),
                  [](const json::object& one) { return !count_of_many(one, "cancelled").empty(); });
  for (const json::object& one : submissions)
    add_submission_row(table, one, has_cancelled ? kShortBar : kBar, now);
  return table;
}

namespace {

namespace json = boost::json;

std::string percent_at(const json::object& object, const char* key) {
  if (!object.contains(key)) return "";
  return std::to_string(std::lround(number_at(object, key) * 100)) + " %";
}

std::string two_places(double number) {
  char text[32];  // NOLINT(cppcoreguidelines-avoid-c-arrays)
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}

std::string words_on(const json::object& shape) {
  const std::string by = text_at(shape, "by");
  if (by == "model") return "by a model of " + text_at(shape, "from") + " waits";
  if (by != "queue") return text_at(shape, "message");
  return shape.contains("wait_50") ? "as its queue looks"
                                   : "as its queue looks, should others run as long as they may";
}

std::string shapes_table(const json::array& shapes, std::time_t now,
                         std::optional<std::size_t> room) {
  using Side = Table::Side;
  Table table({{"SITE"},
               {"SHAPE"},
               {"WAITS", Side::Right},
               {"50 % IN", Side::Right},
               {"90 % IN", Side::Right},
               {"50 % BY"},
               {"90 % BY"},
               {""}});
  for (const json::value& each : shapes) {
    const json::object& shape = each.as_object();
    table.add({text_at(shape, "site"), text_at(shape, "shape"), text_at(shape, "waits"),
               duration_at(shape, "wait_50"), duration_at(shape, "wait_90"),
               moment_at(shape, "start_50", now), moment_at(shape, "start_90", now),
               words_on(shape)});
  }
  return table.text(room, Table::Last::Wrapped);
}

std::string queued_table(const json::array& queued, std::time_t now,
                         std::optional<std::size_t> room) {
  using Side = Table::Side;
  Table table({{"ALLOCATION"},
               {"BATCH ID"},
               {"SITE"},
               {"SHAPE"},
               {"WAITED", Side::Right},
               {"50 % BY"},
               {"90 % BY"}});
  for (const json::value& each : queued) {
    const json::object& one = each.as_object();
    const bool is_known = one.contains("by");
    table.add({text_at(one, "name"), text_at(one, "batch_id"), text_at(one, "site"),
               text_at(one, "shape"), duration_at(one, "waited"),
               is_known ? moment_at(one, "start_50", now) : "not known",
               is_known ? moment_at(one, "start_90", now) : ""});
  }
  return table.text(room);
}

}  // namespace

std::string waits_text(const json::object& waits, std::time_t now,
                       std::optional<std::size_t> room) {
  const json::array* shapes = array_at(waits, "shapes");
  if (!shapes || shapes->empty()) return "no site has a shape to wait for\n";
  std::string text = shapes_table(*shapes, now, room);
  const json::array* queued = array_at(waits, "queued");
  if (queued && !queued->empty()) text += "\n" + queued_table(*queued, now, room);
  return text;
}

std::string waits_score_text(const json::object& waits, std::optional<std::size_t> room) {
  using Side = Table::Side;
  Table table({{"SITE"},
               {"SHAPE"},
               {"BY"},
               {"TOLD", Side::Right},
               {"BY 50 %", Side::Right},
               {"BY 90 %", Side::Right},
               {"MSE LOG10", Side::Right},
               {"WITHIN 2X", Side::Right},
               {"WITHIN 3X", Side::Right}});
  if (const json::array* shapes = array_at(waits, "shapes")) {
    for (const json::value& each : *shapes) {
      const json::array* told = array_at(each.as_object(), "told");
      if (!told) continue;
      for (const json::value& one : *told) {
        const json::object& score = one.as_object();
        table.add({text_at(each.as_object(), "site"), text_at(each.as_object(), "shape"),
                   text_at(score, "by"), text_at(score, "waits"), percent_at(score, "by_50"),
                   percent_at(score, "by_90"),
                   score.contains("log_mse") ? two_places(number_at(score, "log_mse")) : "",
                   percent_at(score, "within_2x"), percent_at(score, "within_3x")});
      }
    }
  }
  if (table.empty())
    return "since the engine's start no allocation has started of which it had been told when\n";
  return table.text(room);
}

namespace {

std::string three_digits(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

}  // namespace

std::string joblog_line(std::uint64_t number, const json::object& task) {
  const std::string node = text_at(task, "node");
  const std::string code = text_at(task, "exit_code");
  const std::string signal = text_at(task, "signal");
  std::string line = std::to_string(number) + "\t" + (node.empty() ? "-" : node) + "\t";
  line += three_digits(number_at(task, "started_at")) + "\t" +
          three_digits(number_at(task, "run_s")) + "\t0\t0\t";
  line += (code.empty() ? "-1" : code) + "\t" + (signal.empty() ? "0" : signal) + "\t";
  for (const char c : command_at(task, "command"))
    line += c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
  return line;
}

}  // namespace hpcbatch
