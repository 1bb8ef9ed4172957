// Tasks that share a GPU side by side instead of in turns: NVIDIA's Multi-Process Service, which
// any user may start for his own processes ("Multi-Process Service", NVIDIA, vR550, chapters 3 and
// 5).
#pragma once

#include "pilot/policy/gpu_facts.hpp"
#include "posix/fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

class GpuSharing {
 public:
  /// `started` hears of the process.
  explicit GpuSharing(std::function<void(pid_t)> started) : started_(std::move(started)) {}

  /// Starts the service for the GPUs that are good, with its sockets below `folder`, and waits for
  /// it for some seconds.  Where that cannot be, tasks take turns, and the log says why.
  void start(const std::string& folder, const std::vector<GpuFacts>& gpus);
  bool is_on() const { return pid_ > 0; }
  /// Ends it, and waits for that for some seconds: a server of it that stays keeps the GPUs from
  /// whoever comes next.
  void stop();
  /// What a task is told that has so much of one of these: `part` in 1/10000.
  void add_to(std::map<std::string, std::string>& variables, const std::vector<unsigned>& gpus,
              std::int64_t part) const;
  /// A child of the pilot was reaped: true if it was this one.
  bool reaped(pid_t pid);

 private:
  std::function<void(pid_t)> started_;
  std::vector<GpuFacts> gpus_;
  std::string folder_;
  pid_t pid_{-1};
  Fd life_;  // it ends when this is closed
};

}  // namespace hpcbatch::pilot
