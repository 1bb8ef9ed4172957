// A PBS as the engine asks it; each file has some of its questions with how their answers are read.
#pragma once

#include "dialect.hpp"
#include "hpcbatch/choices.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/survey.hpp"

#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pbs {

class Pbs final : public Scheduler,
                  public Surveyor,
                  public QueueWatcher,
                  public RoomWatcher,
                  public QueueHistory,
                  public Choices {
 public:
  explicit Pbs(const char* config_yaml);

  std::string script(const AllocationRequest& request) const override;
  CommandLine submit(const AllocationRequest& request,
                     const std::string& script_path) const override;
  std::variant<std::string, SubmitRefused> read_submit(const CommandOutput& output) const override;
  CommandLine poll(const std::string& prefix, const std::vector<std::string>& names) const override;
  Result<std::vector<BatchJob>> read_poll(const std::string& prefix,
                                          const CommandOutput& output) const override;
  CommandLine cancel(const std::vector<std::string>& names,
                     const std::vector<std::string>& numbers) const override;
  CommandLine probe() const override { return survey(); }
  Result<std::vector<Offer>> read_probe(const CommandOutput& output) const override;
  CommandLine survey() const override;
  Result<Survey> read_survey(const CommandOutput& output) const override;
  CommandLine watch_queue() const override;
  Result<WatchedQueue> read_queue(const CommandOutput& output) const override;
  WatchedRoom read_room(const CommandOutput& output) const override;
  CommandLine list_past(std::chrono::seconds from, std::chrono::seconds until) const override;
  Result<PastJobs> read_past(const CommandOutput& output) const override;
  std::vector<std::string> choice_keys() const override;
  std::vector<std::string> options_for(const std::vector<std::string>& choices) const override;

 private:
  Settings settings_;
};

}  // namespace hpcbatch::pbs
