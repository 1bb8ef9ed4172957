#include "booster.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include <xgboost/c_api.h>

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
