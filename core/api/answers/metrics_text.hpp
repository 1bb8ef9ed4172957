// Metrics in Prometheus' text format, version 0.0.4.  Pure.
#pragma once

#include "model/histogram.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hpcbatch {

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

/// One text; families one after another, and all samples of one together, as the format asks.
class MetricsText {
 public:
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  /// What `add` belongs to from then on.  The name of a counter ends in `_total`.
  void gauge(std::string_view name, std::string_view help) { begin(name, "gauge", help); }
  void counter(std::string_view name, std::string_view help) { begin(name, "counter", help); }
  void histogram(std::string_view name, std::string_view help) { begin(name, "histogram", help); }
  /// Values of labels may hold any bytes; those that are no UTF-8 become U+FFFD.
  void add(double value, Labels labels = {});
  /// A family of one.
  void gauge(std::string_view name, std::string_view help, double value) {
    gauge(name, help);
    add(value);
  }
  void counter(std::string_view name, std::string_view help, double value) {
    counter(name, help);
    add(value);
  }
  template <const auto& Bounds>
  void add(const Histogram<Bounds>& histogram, Labels labels = {}) {
    add(Bounds, histogram.counts(), histogram.sum(), labels);
  }

  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::string_view suffix, Labels labels, const Label* more, double value);
  void add(std::span<const double> bounds, std::span<const std::uint64_t> counts, double sum,
           Labels labels);

  std::string name_;
  std::string text_;
};

}  // namespace hpcbatch
