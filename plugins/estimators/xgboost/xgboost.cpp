// The estimator `xgboost`: squared error of the logarithm of the wait, which makes a factor cost
// the same whether it is of minutes or of days.
#include "booster.hpp"
#include "hpcbatch/estimator.hpp"
#include "hpcbatch/keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::xgboost {
namespace {

struct ModelFile {
  std::vector<std::string> features;
  std::string trees;  ///< as xgboost writes them
};

constexpr std::string_view kTitle = "hpcbatch estimator xgboost 1\n";

constexpr std::size_t kSumLength = 17;  // with its line's end

/// FNV-1a (Fowler, Noll and Vo): against damage, not against malice.
std::string sum_of(std::string_view bytes) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::array<char, kSumLength + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx\n", static_cast<unsigned long long>(sum));
  return text.data();
}

[[noreturn]] void damaged(const char* how) {
  throw std::runtime_error(std::string("this is no whole model of the estimator xgboost (") + how +
                           "): train it again");
}

/// No name may have a line's end in it.
std::string to_bytes(const ModelFile& file) {
  std::string body;
  for (const std::string& name : file.features) body.append(name).append("\n");
  body.append("\n").append(file.trees);
  return std::string(kTitle).append(sum_of(body)).append(body);
}

/// Throws std::runtime_error with one sentence where not every bit is as `to_bytes` has made it.
ModelFile model_file_of(const std::string& bytes) {
  if (!bytes.starts_with(kTitle)) damaged("it begins otherwise");
  std::string_view rest = std::string_view(bytes).substr(kTitle.size());
  if (rest.size() < kSumLength) damaged("it is cut off");
  const std::string_view sum = rest.substr(0, kSumLength);
  rest.remove_prefix(kSumLength);
  if (sum != sum_of(rest)) damaged("its sum is wrong");
  ModelFile file;
  for (;;) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) damaged("its columns have no end");
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (name.empty()) break;
    file.features.emplace_back(name);
  }
  file.trees = rest;
  return file;
}

Error rejected(std::string text) {
  return {Error::Kind::Rejected, std::move(text)};
}

float logarithm_of(double seconds) {
  return static_cast<float>(std::log10(seconds + 1));
}
double seconds_of(float logarithm) {
  // No wait of ours is longer than 10^18 seconds, whatever a damaged input makes of it.
  return std::max(0.0, std::pow(10.0, std::min(static_cast<double>(logarithm), 18.0)) - 1);
}

class Model final : public EstimatorModel {
 public:
  Model(std::vector<std::string> features, Booster booster)
      : features_(std::move(features)), booster_(std::move(booster)) {}

  Result<std::vector<double>> predict(const FeatureTable& rows) const override {
    if (auto fault = fault_of(rows, features_)) return rejected(*fault);
    try {
      std::vector<double> waits;
      const std::lock_guard lock(mutex_);
      for (const float each : booster_.predict({rows.values, features_.size()}))
        waits.push_back(seconds_of(each));
      return waits;
    } catch (const std::exception& error) {
      return rejected(error.what());
    }
  }

 private:
  std::vector<std::string> features_;
  Booster booster_;
  mutable std::mutex mutex_;  ///< xgboost's predictions fill a store of its own
};

Parameters parameters_of(const char* config_yaml) {
  const Keys keys(config_yaml, {"num_round", "max_depth", "eta", "min_child_weight", "subsample",
                                "colsample_bytree", "seed", "nthread"});
  const auto real = [&](const char* key, double most, double otherwise) {
    const auto said = keys.text(key);
    double value = otherwise;
    const bool is_number = !said || YAML::convert<double>::decode(YAML::Node(*said), value);
    if (!is_number || !(value > 0 && value <= most))
      keys.fail(key, "must be over 0 and at most " + std::to_string(std::llround(most)));
    return value;
  };
  Parameters all;
  all.num_round = keys.number("num_round", 1, 10'000, all.num_round);
  all.max_depth = keys.number("max_depth", 1, 16, all.max_depth);
  all.eta = real("eta", 1, all.eta);
  all.min_child_weight = real("min_child_weight", 1e6, all.min_child_weight);
  all.subsample = real("subsample", 1, all.subsample);
  all.colsample_bytree = real("colsample_bytree", 1, all.colsample_bytree);
  all.seed = keys.number("seed", 0, 1'000'000'000, all.seed);
  all.nthread = keys.number("nthread", 1, 64, all.nthread);
  return all;
}

/// The rows that count: their inputs, what they teach, and their weights.
struct Lesson {
  std::vector<float> inputs, targets, weights;
};

class XgboostEstimator final : public Estimator {
 public:
  explicit XgboostEstimator(const char* config_yaml) : parameters_(parameters_of(config_yaml)) {}

  Result<std::string> train(const TrainingTable& table) const override {
    if (auto fault = fault_of(table)) return rejected(*fault);
    try {
      return to_bytes({table.inputs.features, grown(table).bytes()});
    } catch (const std::exception& error) {
      return rejected(error.what());
    }
  }

  Result<std::unique_ptr<EstimatorModel>> load(const std::string& model) const override {
    try {
      ModelFile file = model_file_of(model);
      Booster booster = Booster::from(file.trees);
      if (booster.columns() != file.features.size())
        return rejected("the model's trees know " + std::to_string(booster.columns()) +
                        " columns and its names are " + std::to_string(file.features.size()));
      return std::unique_ptr<EstimatorModel>(
          std::make_unique<Model>(std::move(file.features), std::move(booster)));
    } catch (const std::exception& error) {
      return rejected(error.what());
    }
  }

 private:
  /// A wait that is not over is taken to be as long as the waits that are over tell, and at least
  /// as long as it has been: left out, busy days would look short; taken as it is, too.
  Booster grown(const TrainingTable& table) const {
    const Lesson known = lesson_of(table, nullptr);
    const std::size_t columns = table.inputs.features.size();
    Booster first =
        Booster::grown({known.inputs, columns}, known.targets, known.weights, parameters_);
    if (known.targets.size() == table.inputs.rows()) return first;
    const std::vector<float> told = first.predict({table.inputs.values, columns});
    const Lesson all = lesson_of(table, &told);
    return Booster::grown({all.inputs, columns}, all.targets, all.weights, parameters_);
  }

  /// `told`: of all rows; without it pending ones are left out.
  static Lesson lesson_of(const TrainingTable& table, const std::vector<float>* told) {
    Lesson lesson;
    const auto columns = static_cast<std::ptrdiff_t>(table.inputs.features.size());
    for (std::size_t row = 0; row < table.inputs.rows(); ++row) {
      const bool is_pending = !table.is_pending.empty() && table.is_pending[row] != 0;
      if (is_pending && told == nullptr) continue;
      const auto begin = table.inputs.values.begin() + static_cast<std::ptrdiff_t>(row) * columns;
      lesson.inputs.insert(lesson.inputs.end(), begin, begin + columns);
      const float seen = logarithm_of(table.waited[row]);
      lesson.targets.push_back(is_pending ? std::max(seen, (*told)[row]) : seen);
      if (!table.weights.empty()) lesson.weights.push_back(table.weights[row]);
    }
    return lesson;
  }

  Parameters parameters_;
};

}  // namespace
}  // namespace hpcbatch::xgboost

HPCBATCH_ESTIMATOR(hpcbatch::xgboost::XgboostEstimator, "xgboost", "1.0.0");
