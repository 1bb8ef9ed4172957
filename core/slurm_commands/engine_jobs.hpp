// What there is at the engine, as jobs; and the real commands behind ours.
#pragma once

#include "cli/client/engine_client.hpp"
#include "hpcbatch/own_commands.hpp"
#include "slurm_commands/job.hpp"
#include "slurm_commands/listing.hpp"

#include <boost/json/array.hpp>

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::slurm_commands {

/// What a command is called with.
struct Call {
  std::string command;             ///< `squeue`
  std::vector<std::string> words;  ///< behind it
  EnvironmentMap environment;
  const char* real{kRealCommands};  ///< its variable that hands all to the real command
};

inline constexpr const char* kVersion = "slurm 23.11.0-hpcbatch";
/// Slurm shows a job for so long after its end (MinJobAge).
inline constexpr double kShownAfterEnd = 300;

/// Of its environment; empty where it is not set.
std::string variable(const Call& call, const char* name);
/// On standard output, as it stands.
void print_text(const std::string& text);
double now_in_seconds();
/// User, group and formats of this process.
Viewed viewed_by(const Call& call);
/// Whether a user is this one: by name or number.
bool is_own_user(const std::string& user, const Viewed& viewed);

/// One connection to the engine, made by the first question: where none runs, one is started, as
/// by `hpcbatch list`.
class EngineJobs {
 public:
  EngineJobs(const Session& session);

  /// Oldest first; throws CommandError where the engine cannot be reached.
  boost::json::array open_jobs();
  boost::json::array open_and_ended_since(double since);
  /// Of one array, or single task, what is known of it; with `since` less what ended before.  Nothing
  /// where there is none.
  std::optional<boost::json::array> lines_of(std::uint64_t id, std::optional<double> since);
  /// The jobs that a name stands for, in lines as `jobs_of` reads them.
  boost::json::array lines_of(const JobName& name, std::optional<double> since = std::nullopt);
  /// From now on with what they run and the files of their streams.
  void tell_files() { tells_files_ = true; }
  EngineClient& client();
  const Session& session() const { return session_; }

 private:
  boost::json::array paged(const std::string& question);
  std::optional<std::uint64_t> array_holding(std::uint64_t id);

  const Session& session_;
  EngineClient client_;
  bool is_connected_{false}, tells_files_{false};
};

/// Jobs by numbers of the cluster are the real command's.
bool is_ours(const JobName& name);

// The real commands, which stand in another folder of PATH.

/// Where the next one of that name stands behind ours; empty: there is none.
std::string real_command(const Call& call);
/// Becomes the real command with these words.  Throws CommandFailed where there is none.
[[noreturn]] void become_real(const Call& call, const std::vector<std::string>& words);
/// Runs it with our descriptors; its exit code, as a shell tells it.  Nothing where there is none.
std::optional<int> run_real(const Call& call, const std::vector<std::string>& words);
/// What the variable Call::real says: everything goes to the real command, or its jobs are shown, too.
bool is_for_real(const Call& call);
bool shows_real(const Call& call);

}  // namespace hpcbatch::slurm_commands
