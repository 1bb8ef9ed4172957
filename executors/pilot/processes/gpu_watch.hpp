// The helper that looks at this node's GPUs: asked once before the first task, then beside all.
#pragma once

#include "pilot/base/loop.hpp"
#include "pilot/policy/gpu_facts.hpp"
#include "posix/files.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

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

// Tasks that share a GPU side by side instead of in turns: NVIDIA's Multi-Process Service, which
// any user may start for his own processes ("Multi-Process Service", NVIDIA, vR550, chapters 3 and
// 5).

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
