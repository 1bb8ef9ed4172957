// The batch jobs of this user: how they are listed, what their records say, how they are deleted.
#pragma once

#include "hpcbatch/answer_bounds.hpp"
#include "hpcbatch/command_line.hpp"
#include "hpcbatch/scheduler.hpp"
#include "records.hpp"

#include <cstddef>
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

/// Nodes of the batch jobs of one answer: no more of them all together than that may name.
class NodeNames {
 public:
  /// "n1/0*4+n1/1+n2/0" as single names.
  std::vector<std::string> of(std::string_view exec_host);

 private:
  std::size_t left_{kMostNodesInAnAnswer};
};

/// A function of sh that prints the numbers of what `$user` has, ended ones too where they are shown.
/// Torque's `qstat -f` goes with no selection of users, and its names are not read here; SLURM's own
/// command is there where its qstat is.
inline constexpr const char* kOwnIds = R"sh(
set -f  # an array is called 12[]
own_ids() {
  case $dialect in
  openpbs) qselect -u "$user" ;;
  slurm-torque) squeue --me --all --noheader --states=all --format=%A ;;
  *) table=$(qstat -u "$user") || return
    printf '%s\n' "$table" | awk '/^[0-9]/ { sub(/[.].*/, "", $1); print $1 }' ;;
  esac
}
)sh";

}  // namespace hpcbatch::pbs
