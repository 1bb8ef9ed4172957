// A model of how long batch jobs of a site wait: an estimator's, with how far it is off.
#pragma once

#include "foresight/learned/features.hpp"
#include "foresight/wait_history.hpp"
#include "hpcbatch/estimator.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

/// Mean square of how far off the logarithms (log_of_wait) of waits were that had been told: `told`
/// in seconds, one for each of `waited`.  0 of none.
double mean_square_of(const std::vector<double>& told, const std::vector<Seconds>& waited);

// Whether a model is good enough to be used.

/// What speaks against a model that has told these waits (seconds) of jobs that it has not seen, in
/// one sentence: there are fewer than fifty of them, it tells what is no wait, or `medians` (of their
/// classes) were no farther off.  Nothing where it is to be used.
std::optional<std::string> what_speaks_against(const std::vector<double>& told,
                                               const std::vector<double>& medians,
                                               const std::vector<Seconds>& waited);

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

/// log10 of seconds plus one, in which errors and bounds are reckoned.
double log_of_wait(double seconds);
double wait_of_log(double logarithm);

/// A value, or what it is more than.
struct Censored {
  double value{0};
  bool is_more{false};
};
/// The least value that so many (0 to 1) are not above; the largest where nobody knows; of none
/// nothing.
std::optional<double> quantile_of_censored(std::vector<Censored> values, double q);

}  // namespace hpcbatch::foresight
