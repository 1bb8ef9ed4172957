#include "cli/show/submission_table.hpp"

#include "cli/show/values.hpp"
#include "model/quantities.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <optional>
#include <string_view>

namespace hpcbatch {
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

}  // namespace hpcbatch
