// One drop box: watches a directory for `X.job`, has each run as a task, and leaves
// `X.job.finished` there.
//
//   X.job -> X.job.submitted     accepted; the job and `hpc:` (its folder, its files' places)
//   X.job.submitted -> X.job.finished   ended; `job:` too.  The outputs lie at their destinations
//                                before that.
//   X.job.submitted removed      the task is cancelled, its outputs are not published
//   X.job -> X.job.ignored       its name is that of another job
//
// A job runs with the rights of the engine's user, so its file's owner decides what it may ask for,
// where the file is its owner's word (job_rights.hpp).  Another user than the engine's may name
// templates only (a tool's parameters can name programs), not give what the drop box's variables
// give, and read only what that user could read.  Outputs obey `job_rights.hpp`.
#pragma once

#include "dropbox/submit_port.hpp"
#include "hpcbatch/result.hpp"
#include "model/ids.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hpcbatch {

struct DropboxOptions {
  std::string directory;           ///< absolute
  std::string workspace;           ///< absolute, seen by all nodes: each job gets a folder in it
  std::vector<std::string> allow;  ///< see job_rights.hpp
  std::vector<std::string>
      templates;  ///< folders of `SCRIPT.template`; a script found in none is a tool
  std::map<std::string, std::string>
      variables;            ///< for templates; what a job of our own user gives goes over them
  std::string trust_group;  ///< its members may write templates and the workspace
  std::function<void(const std::string&)> warn;  ///< called on the drop box's thread
  /// Further jobs stay `X.job` until one ends: of all, and of one user.
  std::size_t most_active{20'000};
  std::size_t most_active_of_one{1000};
  std::uint64_t input_limit{std::uint64_t{1} << 40};  ///< bytes of the inputs of one job
  Duration quiet{
      std::chrono::seconds{2}};  ///< a file without news of its closing is whole after this
  Duration grace{std::chrono::seconds{30}};  ///< a file that makes no sense is refused after this
  Duration look_every{std::chrono::seconds{30}};  ///< for file systems that tell no changes
};

/// Runs on a thread of its own from construction to destruction.  Destruction cancels nothing: the
/// jobs are found again by the next drop box on the same directory.
class Dropbox {
 public:
  /// Refused where the directory or the workspace cannot be used; says why.
  static Result<std::unique_ptr<Dropbox>> start(DropboxOptions options, SubmitPort& submit_port);
  Dropbox(const Dropbox&) = delete;
  Dropbox& operator=(const Dropbox&) = delete;
  ~Dropbox();

  /// From any thread, also from within the submit port's calls.  An end of an unknown key is ignored.
  void task_ended(DropboxTaskEnd end);

 private:
  class Worker;
  explicit Dropbox(std::unique_ptr<Worker> worker);
  std::unique_ptr<Worker> worker_;
};

// Where the drop box does for each user what may take long: one user's large files hold up his own jobs
// and nobody else's.

/// Each owner's work is done in its order, one piece at a time; owners take turns on at most `most`
/// threads, which are started as they are needed.
class OwnerLanes {
 public:
  explicit OwnerLanes(std::size_t most) : most_(most) {}
  OwnerLanes(const OwnerLanes&) = delete;
  OwnerLanes& operator=(const OwnerLanes&) = delete;
  /// Waits until all that was given has been done.
  ~OwnerLanes();

  /// Any thread.  `work` must not throw.
  void post(std::uint32_t owner, std::function<void()> work);

 private:
  void serve();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::uint32_t, std::deque<std::function<void()>>> waiting_;  ///< of owners with work
  std::deque<std::uint32_t> turns_;  ///< owners with work that no thread is busy with
  std::size_t idle_{0};
  bool ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace hpcbatch
