#include "api/answers/metrics_text.hpp"

#include "documents/texts.hpp"

#include <cmath>

namespace hpcbatch {
namespace {

/// A value of a label, or a help text, which has no quotes around it.
std::string escaped(std::string_view text, bool is_quoted) {
  std::string escaped;
  for (const char c : valid_utf8(std::string(text))) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || (is_quoted && c == '"')) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void MetricsText::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name,
                 escaped(help, false), type);
}

void MetricsText::sample(std::string_view suffix, Labels labels, const Label* more, double value) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  const auto put = [&](const Label& label) {
    text_ += before;
    fmt::format_to(std::back_inserter(text_), "{}=\"{}\"", label.first,
                   escaped(label.second, true));
    before = ',';
  };
  for (const Label& label : labels) put(label);
  if (more) put(*more);
  if (before == ',') text_ += '}';
  text_ += ' ';
  text_ += number(value);
  text_ += '\n';
}

void MetricsText::add(double value, Labels labels) {
  sample("", labels, nullptr, value);
}

void MetricsText::add(std::span<const double> bounds, std::span<const std::uint64_t> counts,
                      double sum, Labels labels) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    count += counts[i];
    const std::string most = i < bounds.size() ? number(bounds[i]) : "+Inf";
    const Label bound{"le", most};
    sample("_bucket", labels, &bound, static_cast<double>(count));
  }
  sample("_sum", labels, nullptr, sum);
  sample("_count", labels, nullptr, static_cast<double>(count));
}

}  // namespace hpcbatch
