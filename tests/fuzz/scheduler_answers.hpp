// What a scheduler plugin reads of the batch system's answers: an input is which of them, how the command
// ended, and its two outputs.
#pragma once

#include "fuzz/harness.hpp"

#include "hpcbatch/contract/load.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/submit_trial.hpp"
#include "hpcbatch/survey.hpp"

#include <memory>
#include <string>

namespace hpcbatch::fuzz {

inline void read_queue(const Scheduler& scheduler, const CommandOutput& output) {
  const auto* watcher = dynamic_cast<const QueueWatcher*>(&scheduler);
  if (!watcher) return;
  const auto queue = watcher->read_queue(output);
  if (const auto* room = dynamic_cast<const RoomWatcher*>(&scheduler))
    check(room->read_room(output).nodes.size() <= output.standard_output.size(),
          "no more nodes than bytes");
  if (queue) check(queue->jobs.size() <= output.standard_output.size(), "no more jobs than bytes");
}

inline void read_answer(const Scheduler& scheduler, std::string_view bytes) {
  Input input(bytes);
  const std::size_t which = input.number() % 7;
  CommandOutput output{};
  output.exit_code = static_cast<int>(input.number() % 4);
  output.standard_error = std::string(input.part());
  output.standard_output = std::string(input.rest());
  if (which == 0) {
    const auto jobs = scheduler.read_poll("hb", output);
    if (!jobs) return;
    check(jobs->size() <= output.standard_output.size(), "no more jobs than bytes");
    for (const BatchJob& job : *jobs)
      check(job.name.starts_with("hb"), "only our own jobs are told");
  }
  if (which == 1) read_queue(scheduler, output);
  if (which == 2) scheduler.read_submit(output);
  if (which == 3) static_cast<void>(scheduler.read_probe(output));
  if (const auto* surveyor = dynamic_cast<const Surveyor*>(&scheduler); which == 4 && surveyor)
    static_cast<void>(surveyor->read_survey(output));
  if (const auto* history = dynamic_cast<const QueueHistory*>(&scheduler); which == 5 && history) {
    const auto past = history->read_past(output);
    if (past) check(past->jobs.size() <= output.standard_output.size(), "no more jobs than bytes");
  }
  if (const auto* trial = dynamic_cast<const SubmitTrial*>(&scheduler); which == 6 && trial)
    static_cast<void>(trial->read_try_submit(output));
}

}  // namespace hpcbatch::fuzz
