// Boosted trees through xgboost's C interface (Chen and Guestrin, KDD 2016, doi
// 10.1145/2939672.2939785): the one place that knows the library.
#pragma once

#include "hpcbatch/estimator.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::xgboost {

/// Settings by xgboost's own names (its page "XGBoost Parameters"); as they are, they were chosen for
/// a hundred thousand waits of a month.
struct Parameters {
  std::int64_t num_round{300};
  std::int64_t max_depth{6};
  double eta{0.04};
  double min_child_weight{100};
  double subsample{0.5};
  double colsample_bytree{0.3};
  std::int64_t seed{1};
  std::int64_t nthread{1};
};

/// Numbers row after row; NaN: not known.
struct Matrix {
  const std::vector<float>& values;
  std::size_t columns{0};
  std::size_t rows() const { return values.size() / columns; }
};

/// Every method throws std::runtime_error with xgboost's first line.
class Booster {
 public:
  /// `targets` one a row; squared error; `weights` one a row or none.
  static Booster grown(const Matrix& inputs, const std::vector<float>& targets,
                       const std::vector<float>& weights, const Parameters& parameters);
  /// From what `bytes` has made.
  static Booster from(const std::string& bytes);

  std::string bytes() const;
  std::size_t columns() const;
  /// One a row.  Not for two threads at once.
  std::vector<float> predict(const Matrix& inputs) const;

 private:
  struct Free {
    void operator()(void* handle) const;
  };
  explicit Booster(void* handle) : handle_(handle) {}
  void set(const char* key, const std::string& value);

  std::unique_ptr<void, Free> handle_;
};

// Whether what an estimator is given fits together.

/// One sentence, or nothing.
std::optional<std::string> fault_of(const TrainingTable& table);
/// Of a question to a model of these columns.
std::optional<std::string> fault_of(const FeatureTable& table,
                                    const std::vector<std::string>& features);

}  // namespace hpcbatch::xgboost
