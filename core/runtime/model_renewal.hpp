// Makes a site's model of waits anew, once enough time has passed since those that it has learned from:
// `hpcbatch waits train` again, in a process of lowest priority.
#pragma once

#include "model/time.hpp"
#include "runtime/learned_waits.hpp"

#include <sys/types.h>

#include <map>
#include <string>

namespace hpcbatch {

/// Whether a model of waits of that time is to be made anew: a tenth of it has passed since, and a day
/// at least.
bool is_due(foresight::Seconds from, foresight::Seconds until, foresight::Seconds now);

/// On the loop's thread.
class ModelRenewal {
 public:
  explicit ModelRenewal(std::string home) : home_(std::move(home)) {}

  /// To be told after each look.  Tries at most once a day, also where it fails, and one site at a time.
  void consider(const std::string& site, const foresight::WaitModelFacts& facts, Time now);

 private:
  bool is_running();

  std::string home_;
  pid_t pid_{-1};
};

}  // namespace hpcbatch
