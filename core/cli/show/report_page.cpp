#include "cli/show/report_page.hpp"

#include "cli/show/report_table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

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
  const json::array* rows = array_at(report, "rows");
  if (rows == nullptr) return bars;
  for (const json::value& row : *rows) {
    if (!row.is_object() || bars.size() == most) break;
    const json::object& one = row.get_object();
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
  const json::array* advice = array_at(report, "advice");
  if (advice == nullptr || advice->empty()) return "";
  std::string out = "<h2>What would save most</h2>\n<ul>\n";
  for (const json::value& one : *advice) {
    if (one.is_object()) out += "<li>" + escaped(text_at(one.get_object(), "text")) + "</li>\n";
  }
  return out + "</ul>\n";
}

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:820px;margin:2em auto;padding:0 1em;"
    "color:#222}pre{font:13px/1.4 ui-monospace,monospace;overflow-x:auto;background:#f6f6f6;"
    "padding:1em}h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}"
    "svg text{font-size:12px;fill:#333}.asked{fill:#d5d9de}.used{fill:#2f7d6d}";

}  // namespace

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
