// A step of srun: what is asked for, and which programs its ranks become.
#pragma once

#include "posix/files.hpp"
#include "slurm_commands/engine_jobs.hpp"
#include "slurm_commands/options.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::slurm_commands {

/// Of GPUs or cpus: their places among those that the task has.
using Shares = std::vector<unsigned>;

/// A part of the task's cpus and GPUs that a step holds while it runs.  Other processes of the task
/// see it as a locked file in the task's own folder, so that it ends with its process however that
/// ends.
class HeldShare {
 public:
  unsigned step{0};   ///< counted from 0 within the task
  Shares cpus, gpus;  ///< of the node where srun runs, where the step has it
  Shares nodes;       ///< of the task, as many as were wanted

 private:
  friend class StepShares;
  Fd file_;
};

/// What all steps of one task share.  Blocking calls; each process has its own.
class StepShares {
 public:
  /// `folder` is the task's own; where none is given, or it cannot be written, nobody counts and each
  /// step is the first.  Cpus and GPUs are those of each node; node 0 is that where srun runs.
  StepShares(const std::string& folder, unsigned cpus, unsigned gpus, unsigned nodes = 1);

  /// Of one node.
  struct Wanted {
    unsigned cpus{0}, gpus{0};
  };
  /// What is free of them, on the first of those nodes that have it; nothing: too few are.  `counts`
  /// is false for a step that shares all with others.
  std::optional<HeldShare> try_to_hold(const std::vector<Wanted>& wanted, bool counts,
                                       const Shares& on_nodes = {0});

 private:
  void take_out_what_is_held(std::vector<bool>& cpus, std::vector<bool>& gpus) const;
  unsigned next_step() const;

  std::string folder_;
  unsigned cpus_, gpus_, nodes_;
};

/// How many of the ranks each of a step's nodes has, alike but for the first of them, as Slurm's
/// distribution by blocks has it.
std::vector<unsigned> ranks_of_nodes(unsigned ranks, unsigned nodes);

/// Where a rank is: on which of the step's nodes, and which of the ranks there.
struct RankPlace {
  unsigned node{0}, local{0};
};
RankPlace place_of_rank(unsigned rank, const std::vector<unsigned>& ranks_of_nodes);

/// One rank as it is started.
struct Rank {
  std::vector<std::string> words;
  EnvironmentMap environment;
  std::vector<int> cpus;    ///< bound to them; empty: to none
  std::string directory;    ///< empty: srun's
  std::string input;        ///< a file; empty: see `reads`
  bool reads{true};         ///< what srun reads; else nothing
  int output{1}, error{2};  ///< descriptors of srun
};

struct RunningStep {
  std::string id;    ///< `2000000001.0`
  std::string node;  ///< as messages name it
  std::vector<Rank> ranks;
  bool label{false};
  bool kills_on_bad_exit{false};
  std::optional<std::chrono::seconds> wait;   ///< for the others, once the first has ended
  std::optional<std::chrono::seconds> limit;  ///< of its time
  int signal{0};                              ///< sent before its limit; 0: none
  std::chrono::seconds signal_after{0};
};

/// Megabytes of `100G`; nothing: it is none.
std::optional<double> megabytes(const std::string& text);
/// Throws CommandFailed for what is no value of --cpu-bind.
void check_binding(const std::string& text);
/// `gpu:a100:2`, `2`, `gpu` -> how many.
unsigned gpus_in(const std::string& text);

/// Runs it to its end; the highest exit code, 128 and the signal for one that a signal ended.
int run_step(const RunningStep& step);

/// The words of each rank, of a configuration as srun(1), MULTIPLE PROGRAM CONFIGURATION, has it.
/// Throws CommandFailed with Slurm's sentences.
std::vector<std::vector<std::string>> programs_of_ranks(const std::string& text, unsigned tasks,
                                                        const std::string& file);

}  // namespace hpcbatch::slurm_commands
