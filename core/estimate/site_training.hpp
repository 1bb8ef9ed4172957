// From what a site's accounting keeps to a model of how long its batch jobs wait, or why there is
// none.
#pragma once

#include "foresight/learned/wait_model.hpp"
#include "hpcbatch/estimator.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/result.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch::estimate {

/// An estimator, as far as it is needed.
struct Teacher {
  std::string name, config_yaml;
  /// The model's bytes; may take minutes.
  std::function<Result<std::string>(const TrainingTable&)> train;
  std::function<Result<std::unique_ptr<EstimatorModel>>(const std::string&)> load;
};

/// Learned from the older four fifths, the model is judged on the newest; only one that is better
/// there than medians of the like is made, then from all.  Rejected with one sentence otherwise.
/// Jobs that came before `since` only wait or run beside the others.
Result<foresight::WaitModelFile> learn_site(const std::vector<PastJob>& jobs,
                                            foresight::Seconds since, foresight::Seconds now,
                                            const Teacher& teacher);

}  // namespace hpcbatch::estimate
