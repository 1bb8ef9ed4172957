// A model of how long batch jobs of a site wait: an estimator's, with how far it is off.
#pragma once

#include "foresight/learned/queue_features.hpp"
#include "hpcbatch/estimator.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::foresight {

struct WaitModelFacts {
  std::string estimator;    ///< name of the plugin
  std::string config_yaml;  ///< the estimator's
  std::vector<std::string> partitions;
  /// Of waits that it had not seen: how much longer they were than told, in order, each as probable
  /// as the others (as log_of_wait).
  std::vector<double> spread;
  std::size_t waits{0};           ///< that it has learned from
  Seconds from{0}, until{0};      ///< when these began
  Seconds half_life{0};           ///< a wait that is so old counted half; 0: not told
  double mean_square{0};          ///< of log_of_wait, of those that it had not seen
  double mean_square_medians{0};  ///< the same of the medians of the like
};

struct WaitModelFile {
  WaitModelFacts facts;
  std::string model;  ///< for the estimator
};

/// One line of JSON, then the model.
std::string to_bytes(const WaitModelFile& file);
/// Throws std::invalid_argument with one sentence where it is no whole file of ours, or its columns
/// are not those of this version.
WaitModelFile wait_model_file(std::string_view bytes);

/// Callable from any thread.
class WaitModel {
 public:
  WaitModel(WaitModelFacts facts, std::unique_ptr<EstimatorModel> model)
      : facts_(std::move(facts)), model_(std::move(model)) {}
  const WaitModelFacts& facts() const { return facts_; }
  /// How long a job that is asked for at `now` waits: in order, each as probable as the others.
  /// `present` and `asked` have the numbers of `partitions()`.
  Result<std::vector<Seconds>> waits(const AskedJob& asked, const std::vector<PresentJob>& present,
                                     Seconds now) const;
  Numbers partitions() const { return Numbers(facts_.partitions); }

 private:
  WaitModelFacts facts_;
  std::unique_ptr<EstimatorModel> model_;
};

}  // namespace hpcbatch::foresight
