#include "booster.hpp"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string_view>

// As omp.h of g++ declares them, which clang does not find.  A library without OpenMP has one thread.
extern "C" [[gnu::weak]] int omp_get_max_threads() noexcept;
extern "C" [[gnu::weak]] void omp_set_num_threads(int count) noexcept;

namespace hpcbatch::xgboost {
namespace {

/// What xgboost says begins with a time and a place in its source and ends with a trace of calls.
void check(int code, const char* tried) {
  if (code == 0) return;
  std::string_view said = XGBGetLastError();
  said = said.substr(0, said.find('\n'));
  if (const auto failed = said.find("Check failed: "); failed != std::string_view::npos)
    said.remove_prefix(failed);
  throw std::runtime_error(std::string("xgboost cannot ") + tried + ": " + std::string(said));
}

/// xgboost takes its own setting for how many threads it uses only after it has read a model; until
/// then it would start one for each processor, and they would stay.
class ThreadBound {
 public:
  explicit ThreadBound(std::int64_t most)
      : before_(::omp_get_max_threads == nullptr ? 1 : ::omp_get_max_threads()) {
    set(static_cast<int>(most));
  }
  ~ThreadBound() { set(before_); }
  ThreadBound(const ThreadBound&) = delete;
  ThreadBound& operator=(const ThreadBound&) = delete;

 private:
  static void set(int count) {
    if (::omp_set_num_threads != nullptr) ::omp_set_num_threads(count);
  }

  int before_;
};

struct FreeMatrix {
  void operator()(void* handle) const { XGDMatrixFree(handle); }
};
using DataMatrix = std::unique_ptr<void, FreeMatrix>;

void set_floats(void* matrix, const char* field, const std::vector<float>& values) {
  check(XGDMatrixSetFloatInfo(matrix, field, values.data(), values.size()), "take the table");
}

DataMatrix matrix_of(const Matrix& inputs, std::int64_t threads) {
  void* handle = nullptr;
  check(XGDMatrixCreateFromMat_omp(inputs.values.data(), inputs.rows(), inputs.columns,
                                   std::numeric_limits<float>::quiet_NaN(), &handle,
                                   static_cast<int>(threads)),
        "take the table");
  return DataMatrix(handle);
}

void* made_booster(const void* matrix) {
  void* handle = nullptr;
  const DMatrixHandle matrices[] = {const_cast<void*>(matrix)};
  check(XGBoosterCreate(matrix ? matrices : nullptr, matrix ? 1 : 0, &handle), "make a model");
  return handle;
}

float mean_of(const std::vector<float>& targets, const std::vector<float>& weights) {
  const double whole = weights.empty() ? static_cast<double>(targets.size())
                                       : std::accumulate(weights.begin(), weights.end(), 0.0);
  const double sum = weights.empty()
                         ? std::accumulate(targets.begin(), targets.end(), 0.0)
                         : std::inner_product(targets.begin(), targets.end(), weights.begin(), 0.0);
  return static_cast<float>(sum / whole);
}

}  // namespace

void Booster::Free::operator()(void* handle) const {
  XGBoosterFree(handle);
}

void Booster::set(const char* key, const std::string& value) {
  check(XGBoosterSetParam(handle_.get(), key, value.c_str()), "take its settings");
}

Booster Booster::grown(const Matrix& inputs, const std::vector<float>& targets,
                       const std::vector<float>& weights, const Parameters& parameters) {
  const ThreadBound bound(parameters.nthread);
  const DataMatrix matrix = matrix_of(inputs, parameters.nthread);
  set_floats(matrix.get(), "label", targets);
  if (!weights.empty()) set_floats(matrix.get(), "weight", weights);
  Booster booster(made_booster(matrix.get()));
  booster.set("verbosity", "0");
  booster.set("objective", "reg:squarederror");
  booster.set("tree_method", "hist");
  booster.set("base_score", std::to_string(mean_of(targets, weights)));
  const auto set = [&](const char* key, auto value) { booster.set(key, std::to_string(value)); };
  set("max_depth", parameters.max_depth);
  set("eta", parameters.eta);
  set("min_child_weight", parameters.min_child_weight);
  set("subsample", parameters.subsample);
  set("colsample_bytree", parameters.colsample_bytree);
  set("seed", parameters.seed);
  set("nthread", parameters.nthread);
  for (int round = 0; round < parameters.num_round; ++round)
    check(XGBoosterUpdateOneIter(booster.handle_.get(), round, matrix.get()), "grow a tree");
  return booster;
}

Booster Booster::from(const std::string& bytes) {
  const ThreadBound bound(1);
  Booster booster(made_booster(nullptr));
  booster.set("verbosity", "0");
  booster.set("nthread", "1");
  check(XGBoosterLoadModelFromBuffer(booster.handle_.get(), bytes.data(), bytes.size()),
        "read the model");
  return booster;
}

std::string Booster::bytes() const {
  const ThreadBound bound(1);
  bst_ulong size = 0;
  const char* data = nullptr;
  check(XGBoosterSaveModelToBuffer(handle_.get(), R"({"format": "ubj"})", &size, &data),
        "write the model");
  return {data, size};
}

std::size_t Booster::columns() const {
  bst_ulong count = 0;
  check(XGBoosterGetNumFeature(handle_.get(), &count), "count the model's columns");
  return count;
}

std::vector<float> Booster::predict(const Matrix& inputs) const {
  if (inputs.rows() == 0) return {};
  const ThreadBound bound(1);
  const DataMatrix matrix = matrix_of(inputs, 1);
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* told = nullptr;
  check(XGBoosterPredictFromDMatrix(handle_.get(), matrix.get(),
                                    R"({"type": 0, "training": false, "iteration_begin": 0,
                                        "iteration_end": 0, "strict_shape": false})",
                                    &shape, &dimensions, &told),
        "predict");
  return {told, told + inputs.rows()};
}

}  // namespace hpcbatch::xgboost

namespace hpcbatch::xgboost {
namespace {

std::optional<std::string> fault_of_values(const FeatureTable& table) {
  if (table.values.size() % table.features.size() != 0)
    return "the table is no whole number of rows: " + std::to_string(table.values.size()) +
           " values in " + std::to_string(table.features.size()) + " columns";
  for (std::size_t at = 0; at < table.values.size(); ++at) {
    if (std::isinf(table.values[at]))
      return "column " + table.features[at % table.features.size()] + " of row " +
             std::to_string(at / table.features.size() + 1) + " is infinite";
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_names(const std::vector<std::string>& features) {
  if (features.empty()) return "the table has no columns";
  for (const std::string& name : features) {
    if (name.empty() || name.find('\n') != std::string::npos)
      return "a column of the table has no name of one line";
  }
  const std::set<std::string> names(features.begin(), features.end());
  if (names.size() != features.size()) return "two columns of the table have one name";
  return std::nullopt;
}

template <class Vector>
std::optional<std::string> fault_of_length(const Vector& column, std::size_t rows,
                                           const char* what) {
  if (column.size() == rows) return std::nullopt;
  return "the table has " + std::to_string(rows) + " rows and " + std::to_string(column.size()) +
         " " + what;
}

/// Of the columns beside the inputs, which have the right lengths.
std::optional<std::string> fault_of_waits(const TrainingTable& table) {
  for (const double wait : table.waited) {
    if (!std::isfinite(wait) || wait < 0) return "a wait is no number of seconds from 0 on";
  }
  bool teaches = false;
  for (std::size_t row = 0; row < table.waited.size(); ++row) {
    const float weight = table.weights.empty() ? 1 : table.weights[row];
    if (!std::isfinite(weight) || weight < 0) return "a weight is no number from 0 on";
    const bool is_pending = !table.is_pending.empty() && table.is_pending[row] != 0;
    teaches = teaches || (weight > 0 && !is_pending);
  }
  if (!teaches) return "no row of the table has a weight and a wait that is over";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of(const TrainingTable& table) {
  if (auto fault = fault_of_names(table.inputs.features)) return fault;
  if (auto fault = fault_of_values(table.inputs)) return fault;
  const std::size_t rows = table.inputs.rows();
  if (rows == 0) return "the table has no rows";
  if (auto fault = fault_of_length(table.waited, rows, "waits")) return fault;
  if (!table.weights.empty())
    if (auto fault = fault_of_length(table.weights, rows, "weights")) return fault;
  if (!table.is_pending.empty())
    if (auto fault = fault_of_length(table.is_pending, rows, "marks of pending jobs")) return fault;
  return fault_of_waits(table);
}

std::optional<std::string> fault_of(const FeatureTable& table,
                                    const std::vector<std::string>& features) {
  if (table.features.size() != features.size())
    return "the model was trained with " + std::to_string(features.size()) +
           " columns and is asked with " + std::to_string(table.features.size());
  const auto [ours, asked] =
      std::mismatch(features.begin(), features.end(), table.features.begin());
  if (ours != features.end())
    return "the model was trained with column " + *ours + " where it is asked with " + *asked;
  return fault_of_values(table);
}

}  // namespace hpcbatch::xgboost
