// One function per command of Slurm's; each returns the exit code and throws CommandFailed,
// CommandError or InterruptedByUser.
#pragma once

#include "slurm_commands/engine_jobs.hpp"

namespace hpcbatch::slurm_commands {

int sbatch(const Call& call, const Session& session);
int squeue(const Call& call, const Session& session);
int sacct(const Call& call, const Session& session);
int scancel(const Call& call, const Session& session);
int scontrol(const Call& call, const Session& session);
int sinfo(const Call& call, const Session& session);
int srun(const Call& call, const Session& session);
int sacctmgr(const Call& call, const Session& session);
int sshare(const Call& call, const Session& session);

/// `scontrol update`, with the words behind it.
int update_jobs(const Call& call, const std::vector<std::string>& words, EngineJobs& engine);

/// An option of sbatch and its value, which a variable may say, as one word: `--mem=4G`; `--requeue`.
std::string sbatch_word(const std::string& name, const std::string& value);

/// Waits for the end of an array or a single task: the highest exit code of its tasks, as sbatch(1),
/// --wait, has it.
int wait_for_end(EngineJobs& engine, const Session& session, const std::string& id);

/// Which names of jobs are ours, and those of the cluster, as texts.
struct NamedJobs {
  std::vector<JobName> ours;
  std::vector<std::string> real;
};
/// Throws CommandFailed with `message` and the word where one is no name of a job.
NamedJobs named_jobs(const std::vector<std::string>& words, const std::string& message);

/// The jobs that are named, each once; with `since` less what ended before.
std::vector<Job> find_named(EngineJobs& engine, const std::vector<JobName>& names, bool together,
                            std::optional<double> since);
/// Of more names than so many all that may be meant is asked for at once.
inline constexpr std::size_t kNamesOneByOne = 50;

/// `node[1-3,7],gpu1` -> each name.  Throws CommandFailed where brackets are not closed, or stand for
/// more than 65,536 names.
std::vector<std::string> expand_hosts(std::string_view list);

/// The other way: neighbours in the list are one pair of brackets, `node[1-3,7]`.
std::string host_list(const std::vector<std::string>& hosts);

/// squeue and sacct as JSON: the keys that clients read, as Slurm 23.11 calls them.
boost::json::object jobs_json(const std::vector<Job>& jobs, const Viewed& viewed);
boost::json::object accounting_json(const std::vector<Job>& jobs, const Viewed& viewed);
/// `JobId=... JobName=...` of `scontrol show job`, on one line or several.
std::string job_details(const Job& job, const Viewed& viewed, bool on_one_line);

}  // namespace hpcbatch::slurm_commands
