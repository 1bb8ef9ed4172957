// Scheduler `pbs`: the commands qsub, qstat, qselect, qdel and pbsnodes of OpenPBS, PBS Pro and
// Torque, and SLURM's that look like them.
#include "dialect.hpp"
#include "jobs.hpp"
#include "questions.hpp"
#include "queues.hpp"

#include "hpcbatch/choices.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/survey.hpp"

namespace hpcbatch {
namespace {

class Pbs final : public Scheduler,
                  public Surveyor,
                  public QueueWatcher,
                  public RoomWatcher,
                  public QueueHistory,
                  public Choices {
 public:
  explicit Pbs(const char* config_yaml) : settings_(pbs::read_settings(config_yaml)) {}

  std::string script(const AllocationRequest& request) const override {
    return pbs::batch_script(request);
  }
  CommandLine submit(const AllocationRequest& request,
                     const std::string& script_path) const override {
    return pbs::qsub(settings_, request, script_path);
  }
  std::variant<std::string, SubmitRefused> read_submit(const CommandOutput& output) const override {
    return pbs::read_qsub(output);
  }
  CommandLine poll(const std::string&, const std::vector<std::string>& names) const override {
    return pbs::list_jobs(settings_.dialect, names);
  }
  Result<std::vector<BatchJob>> read_poll(const std::string& prefix,
                                          const CommandOutput& output) const override {
    return pbs::read_jobs(prefix, output);
  }
  CommandLine cancel(const std::vector<std::string>& names,
                     const std::vector<std::string>&) const override {
    return pbs::delete_jobs(settings_.dialect, names);
  }
  CommandLine probe() const override { return survey(); }
  Result<std::vector<Offer>> read_probe(const CommandOutput& output) const override {
    return offers_in(read_survey(output));
  }
  CommandLine survey() const override { return pbs::survey_queues(settings_.dialect); }
  Result<Survey> read_survey(const CommandOutput& output) const override {
    return pbs::read_survey(settings_, output);
  }
  CommandLine watch_queue() const override { return pbs::list_queue(settings_.dialect); }
  Result<WatchedQueue> read_queue(const CommandOutput& output) const override {
    return pbs::read_queue(output);
  }
  WatchedRoom read_room(const CommandOutput& output) const override {
    return pbs::read_room(output);
  }
  CommandLine list_past(std::chrono::seconds from, std::chrono::seconds until) const override {
    return pbs::list_past(settings_.dialect, from, until);
  }
  Result<PastJobs> read_past(const CommandOutput& output) const override {
    return pbs::read_past(output);
  }
  /// What every qsub has a word for (qsub(1B) of OpenPBS, Torque and SLURM).
  std::vector<std::string> choice_keys() const override { return {"account"}; }
  std::vector<std::string> options_for(const std::vector<std::string>& choices) const override {
    std::vector<std::string> options;
    for (const std::string& choice : choices)
      options.insert(options.end(), {"-A", choice.substr(choice.find('=') + 1)});
    return options;
  }

 private:
  pbs::Settings settings_;
};

}  // namespace
}  // namespace hpcbatch

HPCBATCH_SCHEDULER(hpcbatch::Pbs, "pbs", "1.0");
