// The batch jobs of this user: how they are listed, what their records say, how they are deleted.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/scheduler.hpp"
#include "records.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs {

/// What a batch job's record says of its state and end.
struct Meaning {
  BatchState state{BatchState::Queued};
  EndCause cause{EndCause::None};
};

Meaning meaning_of(const Record& job);
/// What the scheduler notes of a batch job that waits.
BatchState state_by_comment(std::string_view comment);

/// With those that have ended.
CommandLine list_jobs(const std::string& dialect, const std::vector<std::string>& names);
Result<std::vector<BatchJob>> read_jobs(const std::string& prefix, const CommandOutput& output);

/// "n1/0*4+n1/1+n2/0" as single names.
std::vector<std::string> node_names(std::string_view exec_host);

/// By name.
CommandLine delete_jobs(const std::string& dialect, const std::vector<std::string>& names);

}  // namespace hpcbatch::pbs
