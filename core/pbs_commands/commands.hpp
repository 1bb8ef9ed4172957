// One function per command of PBS's; each returns the exit code and throws CommandFailed, CommandError
// or InterruptedByUser.
#pragma once

#include "slurm_commands/engine_jobs.hpp"
#include "slurm_commands/options.hpp"

namespace hpcbatch::pbs_commands {

using slurm_commands::Call;

inline constexpr const char* kServer = "hpcbatch";
/// Toil takes a PBS Pro by this word.
inline constexpr const char* kVersion = "pbs_version = 23.06.06-hpcbatch (PBSPro)";

int qsub(const Call& call, const Session& session);
int qstat(const Call& call, const Session& session);
int qdel(const Call& call, const Session& session);
int qhold(const Call& call, const Session& session);
int qrls(const Call& call, const Session& session);
int qrerun(const Call& call, const Session& session);
/// Refused, with what to do.
int qmove(const Call& call, const Session& session);
int qalter(const Call& call, const Session& session);
int qsig(const Call& call, const Session& session);
/// Its version alone.
int pbsnodes(const Call& call, const Session& session);

const slurm_commands::OptionTable& qsub_options();

}  // namespace hpcbatch::pbs_commands
