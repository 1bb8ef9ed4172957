#include "foresight/learned/wait_model.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace hpcbatch::foresight {

double mean_square_of(const std::vector<double>& told, const std::vector<Seconds>& waited) {
  double sum = 0;
  for (std::size_t at = 0; at < told.size(); ++at) {
    const double off = log_of_wait(told[at]) - log_of_wait(static_cast<double>(waited[at]));
    sum += off * off;
  }
  return told.empty() ? 0 : sum / static_cast<double>(told.size());
}

namespace {

constexpr std::size_t kFewestToJudge = 50;

std::string rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

}  // namespace

std::optional<std::string> what_speaks_against(const std::vector<double>& told,
                                               const std::vector<double>& medians,
                                               const std::vector<Seconds>& waited) {
  if (waited.size() < kFewestToJudge)
    return "only " + std::to_string(waited.size()) + " waits are there to judge the model by, of " +
           std::to_string(kFewestToJudge) + " that it takes";
  const bool are_waits = told.size() == waited.size() &&
                         std::all_of(told.begin(), told.end(),
                                     [](double wait) { return std::isfinite(wait) && wait >= 0; });
  if (!are_waits) return "the model tells what is no wait";
  const double ours = mean_square_of(told, waited);
  const double theirs = mean_square_of(medians, waited);
  if (ours < theirs) return std::nullopt;
  return "on the newest days, which it had not seen, the model's squared error of logarithms is " +
         rounded(ours) + " where medians have " + rounded(theirs);
}

namespace {

namespace json = boost::json;

constexpr std::int64_t kFormat = 1;
/// Nobody plans for longer.
constexpr double kFarthestWait = 400.0 * kDay;

}  // namespace

std::string to_bytes(const WaitModelFile& file) {
  const WaitModelFacts& facts = file.facts;
  const json::object head{{"format", kFormat},
                          {"estimator", facts.estimator},
                          {"config", facts.config_yaml},
                          {"features", json::value_from(queue_feature_names())},
                          {"partitions", json::value_from(facts.partitions)},
                          {"spread", json::value_from(facts.spread)},
                          {"waits", facts.waits},
                          {"from", facts.from},
                          {"until", facts.until},
                          {"half_life", facts.half_life},
                          {"mean_square", facts.mean_square},
                          {"mean_square_medians", facts.mean_square_medians},
                          {"bytes", file.model.size()}};
  return json::serialize(head) + "\n" + file.model;
}

WaitModelFile wait_model_file(std::string_view bytes) {
  const auto end = bytes.find('\n');
  if (end == std::string_view::npos)
    throw std::invalid_argument("it is no model of waits, or only the beginning of one");
  try {
    const json::value head = json::parse(bytes.substr(0, end));
    const json::object& object = head.as_object();
    if (object.at("format").as_int64() != kFormat ||
        json::value_to<std::vector<std::string>>(object.at("features")) != queue_feature_names())
      throw std::invalid_argument("it was made by another version of hpcbatch");
    WaitModelFile file;
    file.facts = {.estimator = json::value_to<std::string>(object.at("estimator")),
                  .config_yaml = json::value_to<std::string>(object.at("config")),
                  .partitions = json::value_to<std::vector<std::string>>(object.at("partitions")),
                  .spread = json::value_to<std::vector<double>>(object.at("spread")),
                  .waits = object.at("waits").to_number<std::size_t>(),
                  .from = object.at("from").to_number<Seconds>(),
                  .until = object.at("until").to_number<Seconds>(),
                  .half_life = object.at("half_life").to_number<Seconds>(),
                  .mean_square = object.at("mean_square").to_number<double>(),
                  .mean_square_medians = object.at("mean_square_medians").to_number<double>()};
    file.model = bytes.substr(end + 1);
    if (object.at("bytes").to_number<std::size_t>() != file.model.size())
      throw std::invalid_argument("a part of it is missing");
    if (file.facts.spread.empty() ||
        !std::is_sorted(file.facts.spread.begin(), file.facts.spread.end()))
      throw std::invalid_argument("it does not say how far it is off");
    return file;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception&) {
    throw std::invalid_argument("it is no model of waits");
  }
}

Result<std::vector<Seconds>> WaitModel::waits(const AskedJob& asked,
                                              const std::vector<PresentJob>& present,
                                              Seconds now) const {
  FeatureTable table{queue_feature_names(), queue_features(asked, present, now)};
  // One that it has never seen.
  if (asked.partition >= facts_.partitions.size())
    table.values.front() = std::numeric_limits<float>::quiet_NaN();
  const auto told = model_->predict(table);
  if (!told) return told.error();
  if (told->size() != 1 || !std::isfinite(told->front()) || told->front() < 0)
    return Error{Error::Kind::Rejected, "the model tells what is no wait"};
  std::vector<Seconds> waits;
  for (const double off : facts_.spread)
    waits.push_back(std::llround(
        std::clamp(wait_of_log(log_of_wait(told->front()) + off), 0.0, kFarthestWait)));
  return waits;
}

double log_of_wait(double seconds) {
  return std::log10(seconds + 1);
}
double wait_of_log(double logarithm) {
  return std::pow(10.0, logarithm) - 1;
}

std::optional<double> quantile_of_censored(std::vector<Censored> values, double q) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end(), [](const Censored& one, const Censored& other) {
    if (one.value != other.value) return one.value < other.value;
    return !one.is_more && other.is_more;
  });
  double above = 1;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (values[at].is_more) continue;
    above *= 1 - 1 / static_cast<double>(values.size() - at);
    if (above <= 1 - q + 1e-12) return values[at].value;
  }
  return values.back().value;
}

}  // namespace hpcbatch::foresight
