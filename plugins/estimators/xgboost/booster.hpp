// Boosted trees through xgboost's C interface (Chen and Guestrin, KDD 2016, doi
// 10.1145/2939672.2939785): the one place that knows the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::xgboost {

/// How the trees grow; names and defaults are explained in xgboost's own list of parameters.
struct Growth {
  std::int64_t trees{400};
  std::int64_t depth{8};
  double rate{0.05};            ///< eta
  std::int64_t least_rows{1};   ///< in a leaf, by their weights (min_child_weight)
  double part_of_rows{0.8};     ///< seen by each tree (subsample)
  double part_of_columns{0.8};  ///< seen by each tree (colsample_bytree)
  std::int64_t seed{1};
  std::int64_t threads{1};
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
                       const std::vector<float>& weights, const Growth& growth);
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

}  // namespace hpcbatch::xgboost
