// What of jobs squeue, sacct and scancel are asked for beside their names.
#pragma once

#include "slurm_commands/engine_jobs.hpp"
#include "slurm_commands/options.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::slurm_commands {

/// Nothing: all.
using States = std::optional<std::set<JobState>>;
/// Throws CommandFailed in the words of `command`.
States states_in(const std::vector<std::string>& words, const std::string& command);

/// Nothing: not asked for.  A list that is empty, as of a variable that is not set, admits no job:
/// a script that cleans up must not cancel all.
using Words = std::optional<std::set<std::string, std::less<>>>;
Words words_of(const Parsed& parsed, const char* option);
/// Of an option, else of a variable that has a value.
Words words_of(const Parsed& parsed, const char* option, const Call& call, const char* name);

/// What of jobs a command is asked for beside their names.
struct Wanted {
  States states;
  Words names, partitions, accounts, qos, nodes;
  bool nobody{false};  ///< other users have no jobs here

  bool admits_ended() const {
    return !states || std::any_of(states->begin(), states->end(), has_ended);
  }
  bool admits(const Job& job, const Viewed& viewed) const;
};

bool is_for_others(const Words& users, const Viewed& viewed);
/// One that the system does not know is a mistake, and no other user's.
void check_users(const Words& users, const std::string& complaint);

}  // namespace hpcbatch::slurm_commands
