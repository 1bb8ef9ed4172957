// What of a named job a change reaches, and what it does not, as scontrol tells of it.
#pragma once

#include "slurm_commands/job.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch::slurm_commands {

struct Reach {
  std::uint64_t number{0};
  bool is_array{false};
  bool is_whole{true};                        ///< no other elements of it could be changed so
  std::vector<Job> jobs{};                    ///< that are changed
  std::map<std::string, IndexSet> refused{};  ///< those of the user, by why

  /// Of those that are changed; empty: none is.
  IndexSet changed() const;
};

/// `all` is the whole job, `why` says of each in Slurm's words why not; empty: it is changed.  What has
/// ended of an array that is named as a whole keeps nobody from changing the rest.
Reach reach_of(const std::vector<Job>& all, const JobName& name,
               const std::function<std::string(const Job&)>& why);

/// Prints what is refused, and of an array also what is changed.  Whether there was anything to say.
bool complain_of(const Reach& reach);

inline constexpr const char* kIsOver = "Job has already finished";

}  // namespace hpcbatch::slurm_commands
