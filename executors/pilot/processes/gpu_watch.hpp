// The helper that looks at this node's GPUs: asked once before the first task, then beside all.
#pragma once

#include "pilot/base/loop.hpp"
#include "pilot/policy/gpu_facts.hpp"
#include "posix/fd.hpp"

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// What it finds before anything runs there: of as many as are wanted, in the order of the pilot's
/// numbers.  None where nobody knows them here, whose maker has no word for us.  Takes the time that
/// a small kernel takes, and half a minute where a driver does not answer; `test`, which a shell runs
/// for each that is good (empty: none), a minute more at most.
std::vector<GpuFacts> check_gpus(const std::string& helper, const std::string& test,
                                 std::size_t wanted);

class GpuWatch {
 public:
  /// `started` hears of the process, `seen` of what it says.
  GpuWatch(Loop& loop, std::function<void(pid_t)> started, std::function<void(const GpuSeen&)> seen)
      : loop_(loop), started_(std::move(started)), seen_(std::move(seen)) {}
  ~GpuWatch() { stop(); }
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// Does nothing where there is none to be watched.
  void start(const std::string& helper, std::vector<GpuFacts> gpus);
  /// Asks for a look at once, of which each GPU's line says so; false: nobody looks.
  bool look_now() const;
  /// A child of the pilot was reaped: true if it was this one.
  bool reaped(pid_t pid);

 private:
  void read();
  void stop();

  Loop& loop_;
  std::function<void(pid_t)> started_;
  std::function<void(const GpuSeen&)> seen_;
  std::vector<GpuFacts> gpus_;
  pid_t pid_{-1};
  Fd lines_;
  Fd life_;  // it ends when this is closed
  std::string rest_;
};

}  // namespace hpcbatch::pilot
