// Scheduler `slurm`: the commands sbatch, squeue, scancel and sinfo, and sacct where there is
// accounting.
#include "listing.hpp"
#include "questions.hpp"
#include "submission.hpp"

#include "hpcbatch/choices.hpp"
#include "hpcbatch/keys.hpp"
#include "hpcbatch/node_avoider.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/submit_trial.hpp"
#include "hpcbatch/survey.hpp"

namespace hpcbatch {
namespace {

/// The arguments are names.  A name nobody knows is no error; with a number that has been forgotten
/// it would be one.  `--user`: root, and others who may, would cancel everybody's of that name.
constexpr const char* kCancel = R"sh(
failed=0
user=$(id -u)
for name in "$@"; do scancel --user="$user" --name="$name" || failed=$?; done
exit $failed
)sh";

class Slurm final : public Scheduler,
                    public Surveyor,
                    public SubmitTrial,
                    public NodeAvoider,
                    public QueueWatcher,
                    public RoomWatcher,
                    public QueueHistory,
                    public Choices {
 public:
  explicit Slurm(const char* config_yaml) {
    const Keys none(config_yaml, {},
                    "what sbatch is to be given belongs under 'options' of the site");
  }

  std::string script(const AllocationRequest& request) const override {
    return slurm::batch_script(request);
  }
  CommandLine submit(const AllocationRequest& request,
                     const std::string& script_path) const override {
    return slurm::sbatch(request, script_path);
  }
  std::variant<std::string, SubmitRefused> read_submit(const CommandOutput& output) const override {
    return slurm::read_sbatch(output);
  }
  CommandLine poll(const std::string&, const std::vector<std::string>& names) const override {
    return slurm::list_jobs(names);
  }
  Result<std::vector<BatchJob>> read_poll(const std::string& prefix,
                                          const CommandOutput& output) const override {
    return slurm::read_jobs(prefix, output);
  }
  CommandLine cancel(const std::vector<std::string>& names,
                     const std::vector<std::string>&) const override {
    CommandLine command{.argv = {"sh", "-c", kCancel, "sh"}};
    command.argv.insert(command.argv.end(), names.begin(), names.end());
    return command;
  }
  CommandLine probe() const override { return survey(); }
  Result<std::vector<Offer>> read_probe(const CommandOutput& output) const override {
    return offers_in(read_survey(output));
  }
  CommandLine survey() const override { return slurm::survey_partitions(); }
  CommandLine try_submit(const AllocationRequest& request,
                         const std::string& script_path) const override {
    return slurm::sbatch_test(request, script_path);
  }
  Result<std::string> read_try_submit(const CommandOutput& output) const override {
    return slurm::read_sbatch_test(output);
  }
  Result<Survey> read_survey(const CommandOutput& output) const override {
    return slurm::read_survey(output);
  }
  std::vector<std::string> options_without(const std::vector<std::string>& nodes) const override {
    return slurm::exclusion(nodes);
  }
  CommandLine watch_queue() const override { return slurm::list_queue(); }
  Result<WatchedQueue> read_queue(const CommandOutput& output) const override {
    return slurm::read_queue(output);
  }
  WatchedRoom read_room(const CommandOutput& output) const override {
    return slurm::read_room(output);
  }
  CommandLine list_past(std::chrono::seconds from, std::chrono::seconds until) const override {
    return slurm::list_past(from, until);
  }
  Result<PastJobs> read_past(const CommandOutput& output) const override {
    return slurm::read_past(output);
  }
  /// sbatch(1).  Not: what says how many nodes, GPUs and how long (that is the shape's), what
  /// hpcbatch says itself (names, files, `--comment`, `--exclude`), and other clusters.
  std::vector<std::string> choice_keys() const override {
    return {"account", "constraint",  "licenses", "nice", "nodelist", "prefer",
            "qos",     "reservation", "switches", "tmp",  "wckey"};
  }
  std::vector<std::string> options_for(const std::vector<std::string>& choices) const override {
    std::vector<std::string> options;
    options.reserve(choices.size());
    for (const std::string& choice : choices) options.push_back("--" + choice);
    return options;
  }
};

}  // namespace
}  // namespace hpcbatch

HPCBATCH_SCHEDULER(hpcbatch::Slurm, "slurm", "1.0");
