// The interface of an estimator plugin: from waits that are over to how long a wait will be.
#pragma once

#include "hpcbatch/plugin.hpp"
#include "hpcbatch/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// What is known of batch jobs at the moment at which their waits are to be told: a row each.
struct FeatureTable {
  std::vector<std::string> features;  ///< names of the columns, none twice
  std::vector<float> values;          ///< row after row; NaN: not known.  Never infinite.

  std::size_t rows() const { return features.empty() ? 0 : values.size() / features.size(); }
};

/// Rows whose waits have been seen.
struct TrainingTable {
  FeatureTable inputs;
  std::vector<double> waited;           ///< seconds, one a row
  std::vector<float> weights;           ///< one a row, at least 0; empty: all count alike
  std::vector<std::uint8_t> is_pending; /**< one a row, or empty: 1 where the job has not started
                                             yet, so that its wait is longer than `waited` */
};

/// What training has made, ready to be asked.  No I/O, no clock; callable from any thread, also from
/// several at once.
class EstimatorModel {
 public:
  EstimatorModel() = default;
  EstimatorModel(const EstimatorModel&) = delete;
  EstimatorModel& operator=(const EstimatorModel&) = delete;
  virtual ~EstimatorModel() = default;

  /// Seconds, one a row, each finite and at least 0; the same for the same row, whatever rows stand
  /// beside it.  Rejected where the columns are others than those of the training, or in another
  /// order, and where the table is no whole number of rows.
  virtual Result<std::vector<double>> predict(const FeatureTable& rows) const = 0;
};

/// Learns how long batch jobs wait.  No I/O, no clock; callable from any thread, also from several
/// at once.  Starts no threads, unless its configuration asks for some: then, in a process that does
/// nothing else, they may stay.
class Estimator {
 public:
  static constexpr hpcbatch_plugin_kind kKind = HPCBATCH_KIND_ESTIMATOR;
  Estimator() = default;
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;
  virtual ~Estimator() = default;

  /// A model as bytes, to be kept in a file and given to `load`; the same bytes for the same table.
  /// May take minutes.  Rejected with one sentence where the table is empty or does not fit
  /// together, or holds what is no wait.
  virtual Result<std::string> train(const TrainingTable& table) const = 0;
  /// Rejected with one sentence where the bytes are no whole model that `train` of this plugin has
  /// made: whatever they are, it never crashes.
  virtual Result<std::unique_ptr<EstimatorModel>> load(const std::string& model) const = 0;
};

}  // namespace hpcbatch

#define HPCBATCH_ESTIMATOR(Concrete, name, version) \
  HPCBATCH_PLUGIN_(hpcbatch::Estimator, Concrete, HPCBATCH_KIND_ESTIMATOR, name, version)
