#include "cli/show/listings.hpp"

#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::size_t kRows = 20;

/// The columns of the CSV, with their units in their names.
constexpr std::array kColumns{"runs",
                              "done",
                              "failed",
                              "cancelled",
                              "never_ran",
                              "tried_again",
                              "wait_h",
                              "run_h",
                              "lost_h",
                              "cpu_h",
                              "cpu_asked_h",
                              "memory_gb_h",
                              "memory_asked_gb_h",
                              "time_h",
                              "time_asked_h",
                              "gpu_asked_h",
                              "gpu_watched_h",
                              "gpu_used_h",
                              "read_gb",
                              "written_gb",
                              "staged_in_h",
                              "staged_out_h"};

const json::object& object_or_none(const json::object& report, const char* key) {
  static const json::object kNone;
  const json::object* found = object_at(report, key);
  return found == nullptr ? kNone : *found;
}

/// Whole seconds, but where there are few.
std::string short_duration(double seconds) {
  const auto rounded = std::chrono::duration<double>(seconds < 10 ? seconds : std::round(seconds));
  return show_duration(std::chrono::duration_cast<Duration>(rounded));
}

/// Less than an hour as `12m30s`.
std::string hours(double value) {
  return value >= 1 ? few_digits(value) + " h" : short_duration(value * 3600);
}

std::string percent(double part, double whole) {
  if (whole <= 0) return "";
  return std::to_string(std::lround(100 * part / whole)) + " %";
}

std::string count_of(double number, const char* one, const char* many) {
  return whole(number) + " " + (number == 1 ? one : many);
}

std::string ends_in_words(const json::object& total) {
  std::string text = count_of(number_at(total, "runs"), "run", "runs");
  text += ": " + text_at(total, "done") + " done";
  for (const auto& [key, word] : {std::pair{"failed", "failed"}, {"cancelled", "cancelled"}}) {
    if (number_at(total, key) > 0) text += ", " + text_at(total, key) + " " + word;
  }
  if (number_at(total, "tried_again") > 0)
    text +=
        ", " + count_of(number_at(total, "tried_again"), "attempt", "attempts") + " tried again";
  if (number_at(total, "never_ran") > 0)
    text += "; " + text_at(total, "never_ran") + " ended before they ran";
  return text;
}

std::string batch_jobs_in_words(const json::object& report, double runs) {
  double jobs = 0, waited = 0;
  for (const json::object& site : objects_at(report, "batch_jobs")) {
    jobs += number_at(site, "jobs");
    waited += number_at(site, "wait_h");
  }
  return count_of(jobs, "allocation", "allocations") + " waited " + hours(waited) +
         " in queues; one by one it would have been " + count_of(runs, "batch job", "batch jobs");
}

/// Empty where it is not known.
std::string held_cpus_in_words(const json::object& report, const json::object& total) {
  const double held = number_at(report, "held_cpu_h"), asked = number_at(total, "cpu_asked_h");
  // A run counts on the day on which it ended, with all of its hours.
  if (held <= 0 || asked > held) return "";
  return "pilots held " + hours(held) + " of cpus, of which tasks that have ended had " +
         hours(asked) + " (" + percent(asked, held) + ")";
}

/// The same of GPUs, by kind.
std::string held_gpus_in_words(const json::object& report, const json::object& total) {
  const json::object& kinds = object_or_none(report, "held_gpu_h");
  double held = 0;
  std::string by_kind;
  for (const auto& [kind, value] : kinds) {
    const double of_kind = number_at(kinds, std::string(kind));
    held += of_kind;
    by_kind += (by_kind.empty() ? "" : ", ") + hours(of_kind) + " of " + std::string(kind);
  }
  const double asked = number_at(total, "gpu_asked_h"), used = number_at(total, "gpu_used_h");
  if (held <= 0 || asked > held) return "";
  std::string text = "pilots held GPUs for " + by_kind + "; tasks that have ended had them for " +
                     hours(asked) + " (" + percent(asked, held) + ")";
  if (number_at(total, "gpu_watched_h") > 0)
    text += " and kept them busy for " + hours(used) + " (" + percent(used, held) + ")";
  // Between two tasks and before a pilot ends nothing runs.
  constexpr double kMostly = 0.7;
  if (asked < kMostly * held)
    text += "; a shorter idle_after of the site, or smaller shapes, would leave less of them idle";
  return text;
}

/// One line for each thing that is asked for.
Table efficiency(const json::object& total) {
  using Side = Table::Side;
  Table table({{""},
               {"ASKED", Side::Right},
               {"USED", Side::Right},
               {"WASTED", Side::Right},
               {"EFFICIENCY", Side::Right}});
  const auto gigabyte_hours = [](double value) { return few_digits(value) + " GB-h"; };
  const auto add = [&](const char* name, const char* asked, const char* used, auto in_words) {
    const double all = number_at(total, asked), some = number_at(total, used);
    if (all <= 0) return;
    table.add({name, in_words(all), in_words(some), in_words(std::max(0.0, all - some)),
               percent(some, all)});
  };
  add("cpu", "cpu_asked_h", "cpu_h", hours);
  add("memory", "memory_asked_gb_h", "memory_gb_h", gigabyte_hours);
  add("time limits", "time_asked_h", "time_h", hours);
  add("gpu, watched", "gpu_watched_h", "gpu_used_h", hours);
  // Of others nobody knows what they did.
  if (const double other = number_at(total, "gpu_asked_h") - number_at(total, "gpu_watched_h");
      other > 0 && few_digits(other) != "0")
    table.add(
        {number_at(total, "gpu_watched_h") > 0 ? "gpu, others" : "gpu", hours(other), "", "", ""});
  return table;
}

Table rows_of(const Objects& rows, const std::string& by) {
  using Side = Table::Side;
  const auto in_hours = [](const json::object& row, std::string_view key) {
    return hours(number_at(row, key));
  };
  const auto share_of = [](const char* asked) {
    return [asked](const json::object& row, std::string_view used) {
      return percent(number_at(row, used), number_at(row, asked));
    };
  };
  // Of days the last, of all else the first matter most.
  const auto shown = static_cast<std::ptrdiff_t>(std::min(rows.size(), kRows));
  const auto first = by == "day" ? rows.end() - shown : rows.begin();
  return list_table({{"runs", "RUNS", Side::Right},
                     {"failed", "FAILED", Side::Right,
                      [](const json::object& row, std::string_view key) {
                        return number_at(row, key) > 0 ? text_at(row, key) : "";
                      }},
                     {"cpu_asked_h", "CPU", Side::Right, in_hours},
                     {"cpu_h", "USED", Side::Right, share_of("cpu_asked_h")},
                     {"memory_gb_h", "MEM", Side::Right, share_of("memory_asked_gb_h")},
                     {"run_h", "RUN", Side::Right, in_hours},
                     {"run_95_s", "95%", Side::Right,
                      [](const json::object& row, std::string_view key) {
                        const json::object& took = object_or_none(row, "took");
                        return took.contains(key) ? short_duration(number_at(took, key)) : "";
                      }},
                     {"wait_h", "WAIT", Side::Right,
                      [](const json::object& row, std::string_view key) {
                        return number_at(row, "runs") > 0 ? hours(number_at(row, key)) : "";
                      }},
                     {"key", upper_case(by), Side::Left,
                      [](const json::object& row, std::string_view key) {
                        const std::string name = text_at(row, key);
                        return name.empty() ? "-" : name;
                      }}},
                    Objects(first, first + shown));
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

constexpr std::size_t kKindsShown = 15;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

struct Bar {
  std::string name;
  double asked{0}, used{0};
};

std::vector<Bar> bars_of(const json::object& report, const char* asked, const char* used,
                         std::size_t most) {
  std::vector<Bar> bars;
  for (const json::object& one : objects_at(report, "rows")) {
    if (bars.size() == most) break;
    bars.push_back({text_at(one, "key"), number_at(one, asked), number_at(one, used)});
  }
  std::erase_if(bars, [](const Bar& bar) { return bar.asked <= 0; });
  return bars;
}

std::string number(double value) {
  return std::to_string(std::lround(value));
}

/// A row for each: what was asked for in grey, of it what was used in front.
std::string plot(const std::string& title, const std::vector<Bar>& bars, const std::string& unit) {
  constexpr double kName = 190, kWidth = 420, kRow = 22, kNumbers = 190;
  if (bars.empty()) return "";
  double most = 0;
  for (const Bar& bar : bars) most = std::max({most, bar.asked, bar.used});
  const double height = kRow * static_cast<double>(bars.size());
  std::string svg = "<h2>" + escaped(title) + "</h2>\n<svg width=\"" +
                    number(kName + kWidth + kNumbers) + "\" height=\"" + number(height) +
                    "\" role=\"img\" aria-label=\"" + escaped(title) + "\">\n";
  double y = 0;
  for (const Bar& bar : bars) {
    const auto length = [&](double value) { return number(kWidth * value / most); };
    svg += "<text x=\"" + number(kName - 6) + "\" y=\"" + number(y + 15) +
           "\" text-anchor=\"end\">" + escaped(first_letters(bar.name, 28)) + "</text>";
    svg += "<rect class=\"asked\" x=\"" + number(kName) + "\" y=\"" + number(y + 3) +
           "\" height=\"16\" width=\"" + length(bar.asked) + "\"/>";
    svg += "<rect class=\"used\" x=\"" + number(kName) + "\" y=\"" + number(y + 3) +
           "\" height=\"16\" width=\"" + length(std::min(bar.used, most)) + "\"/>";
    svg += "<text x=\"" + number(kName + kWidth + 6) + "\" y=\"" + number(y + 15) + "\">" +
           few_digits(bar.used) + " of " + few_digits(bar.asked) + " " + unit + "</text>\n";
    y += kRow;
  }
  return svg + "</svg>\n";
}

std::string advice_list(const json::object& report) {
  const Objects advice = objects_at(report, "advice");
  if (advice.empty()) return "";
  std::string out = "<h2>What would save most</h2>\n<ul>\n";
  for (const json::object& one : advice) out += "<li>" + escaped(text_at(one, "text")) + "</li>\n";
  return out + "</ul>\n";
}

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:820px;margin:2em auto;padding:0 1em;"
    "color:#222}pre{font:13px/1.4 ui-monospace,monospace;overflow-x:auto;background:#f6f6f6;"
    "padding:1em}h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}"
    "svg text{font-size:12px;fill:#333}.asked{fill:#d5d9de}.used{fill:#2f7d6d}";

}  // namespace

std::string few_digits(double value) {
  if (value <= 0) return "0";
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 2 : 3;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  std::string out = text.data();
  if (digits == 0) return out;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "0" ? "<0.001" : out;
}

std::string report_text(const json::object& report, const std::string& by,
                        std::optional<std::size_t> room) {
  const json::object& total = object_or_none(report, "total");
  const double runs = number_at(total, "runs") + number_at(total, "tried_again");
  std::string days = text_at(report, "since");
  if (text_at(report, "until") != days) days += " to " + text_at(report, "until");
  const auto line = [&](const std::string& text) {
    return (room ? wrapped(text, *room, 0, 2) : text) + "\n";
  };
  if (runs + number_at(total, "never_ran") == 0)
    return line(days + " (UTC): nothing has run; `--since 30d` looks farther back");
  std::string out = line(days + " (UTC): " + ends_in_words(total));
  out += line(batch_jobs_in_words(report, runs));
  for (const std::string& held :
       {held_cpus_in_words(report, total), held_gpus_in_words(report, total)})
    if (!held.empty()) out += line(held);
  std::string times = "all tasks together ran " + hours(number_at(total, "run_h")) +
                      " and waited " + hours(number_at(total, "wait_h")) + " before it";
  // A sum that nobody sat through frightens.
  const double ended = number_at(total, "runs");  // each waited once, however often it was tried
  if (ended > 1) times += ", " + hours(number_at(total, "wait_h") / ended) + " each";
  if (number_at(total, "staged_in_h") > 0)
    times += " (of that " + hours(number_at(total, "staged_in_h")) + " for files on their way)";
  if (number_at(total, "staged_out_h") > 0)
    times += "; outputs were on their way back for " + hours(number_at(total, "staged_out_h"));
  out += line(times);
  if (number_at(total, "lost_h") > 0)
    out += line(hours(number_at(total, "lost_h")) + " ran for nothing");
  out += "\n" + efficiency(total).text(room) + "\n";
  const Objects rows = objects_at(report, "rows");
  out += rows_of(rows, by).text(room);
  if (rows.size() > kRows)
    out += line("and " + std::to_string(rows.size() - kRows) + " more: --csv or --json has all");
  const Objects advice = objects_at(report, "advice");
  if (advice.empty()) {
    return out +
           "\nNo advice: nobody asked for much more than was used, or there were fewer\n"
           "than ten runs of a kind (for cpus: ten of a second or more, and most so long)\n";
  }
  out += "\nWhat would save most:\n";
  for (const json::object& one : advice) {
    const std::string text = one_line(text_at(one, "text"));
    out += "  " + (room ? wrapped(text, *room, 2, 4) : text) + "\n";
  }
  return out;
}

std::string report_csv(const json::object& report, const std::string& by) {
  std::string out = by;
  for (const char* column : kColumns) out += std::string(",") + column;
  out += "\r\n";
  for (const json::object& row : objects_at(report, "rows")) {
    out += csv_field(text_at(row, "key"));
    for (const char* column : kColumns) out += "," + text_at(row, column);
    out += "\r\n";
  }
  return out;
}

std::string report_page(const json::object& by_kind, const json::object& by_day) {
  const std::string days = text_at(by_kind, "since") + " to " + text_at(by_kind, "until");
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<title>hpcbatch report, " +
      escaped(days) + "</title>\n<style>" + kStyle + "</style></head>\n<body>\n" +
      "<h1>What tasks used, " + escaped(days) + "</h1>\n";
  page +=
      plot("Cpu hours by day: used of asked", bars_of(by_day, "cpu_asked_h", "cpu_h", 400), "h");
  page +=
      plot("Cpu hours by kind of task", bars_of(by_kind, "cpu_asked_h", "cpu_h", kKindsShown), "h");
  page += plot("Memory by kind of task",
               bars_of(by_kind, "memory_asked_gb_h", "memory_gb_h", kKindsShown), "GB-h");
  page += advice_list(by_kind);
  constexpr std::size_t kLetters = 100;
  page += "<h2>In numbers</h2>\n<pre>" + escaped(report_text(by_kind, "kind", kLetters)) +
          "</pre>\n</body></html>\n";
  return page;
}

}  // namespace hpcbatch
