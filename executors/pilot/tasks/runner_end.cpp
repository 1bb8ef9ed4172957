// The end of a task: asked for or by itself, until nothing of it is left, and what is said of it.
#include "pilot/tasks/runner.hpp"
#include "pilot/tasks/slot.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/processes/process_tree.hpp"
#include "wire/outbox.hpp"
#include "wire/outputs.hpp"

#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

// How soon it is looked again whether processes that were killed are gone; doubled each time.
constexpr Duration kFirstSweepPause = 2ms;
constexpr Duration kLongestSweepPause = 500ms;
constexpr Duration kDoubt = 200ms;
constexpr Duration kTidying = 3s;
// A batch system that ends a batch job signals every process in it, the pilot perhaps after its
// tasks.
constexpr Duration kWhoseTerm = 300ms;

std::uint64_t micros(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

/// By the signal, or as a shell says it of its child.
bool ended_by(int status, int signal) {
  constexpr int kShellsWord = 128;
  return (WIFSIGNALED(status) && WTERMSIG(status) == signal) ||
         (WIFEXITED(status) && WEXITSTATUS(status) == kShellsWord + signal);
}

bool was_terminated(int status) {
  constexpr int kShellsWord = 128 + SIGTERM;
  return (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
         (WIFEXITED(status) && WEXITSTATUS(status) == kShellsWord);
}

bool is_full(const std::string& directory) {
  struct statvfs info {};
  return ::statvfs(directory.c_str(), &info) == 0 && info.f_blocks > 0 && info.f_bavail == 0;
}

/// What ends with its pilot must not wait for anybody's word, and nobody wants what was cancelled.
bool is_its_own_end(Failure failure) {
  return failure != Failure::Cancelled && failure != Failure::PilotWalltime &&
         failure != Failure::PilotPreempted && failure != Failure::PilotKilled;
}

/// Those that are to be moved to their places; a task that went well without them has failed.
std::vector<wire::Output> outputs_to_publish(const wire::Start& start, const std::string& directory,
                                             bool ran, wire::Result& result) {
  std::vector<wire::Output> outputs(start.outputs().begin(), start.outputs().end());
  if (outputs.empty()) return outputs;
  if (failure_of(result) == Failure::Ok) {
    const auto refusal = wire::check_outputs(directory, outputs);
    if (!refusal) return wire::outputs_made(directory, std::move(outputs));
    set_failure(result, refusal->failure);
    result.set_message(refusal->message);
  }
  if (!ran || !is_its_own_end(failure_of(result))) return {};
  return wire::outputs_of_failure(directory, std::move(outputs));
}

}  // namespace

void Runner::stop(const AttemptId& id, bool by_force, std::optional<Failure> failure,
                  const std::string& message, Time now) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  Running& task = at->second;
  if (task.planned) {
    // Nothing of it has run.
    services_.forget(id);
    images_.forget(id);
    end(task, {failure.value_or(Failure::Cancelled), 0, 0, message}, false);
    return;
  }
  if (task.look && failure != Failure::GpuError) return finish(id);
  if (!task.stopped_for) {
    task.stopped_for = failure;
    task.stop_message = message;
  }
  if (by_force || task.look) {
    task.by_force = true;
    sweep(task, now);
  } else if (task.main_lives) {
    ::kill(-task.pid, SIGTERM);
    // A stopped process takes no other signal before it goes on.
    ::kill(-task.pid, SIGCONT);
  }
}

void Runner::signal(const Signal& asked) {
  const auto at = running_.find(asked.id);
  if (at == running_.end() || at->second.planned || !at->second.main_lives) return;
  const pid_t first = at->second.pid;
  switch (asked.to) {
    case SignalTo::All:
      ::kill(-first, asked.number);
      break;
    case SignalTo::First:
      ::kill(first, asked.number);
      break;
    case SignalTo::Steps:
      // It hands on what it is sent, to other nodes too.
      for (const pid_t pid : with_descendants({first}))
        if (name_of(pid) == "srun") ::kill(pid, asked.number);
      break;
  }
}

/// What may be added up of processes; getrusage(2).
void Runner::add_usage(Running& task, const rusage& usage) {
  // Linux counts in these, whatever the device's own are.
  constexpr std::uint64_t kBlock = 512;
  task.cpu_us += micros(usage.ru_utime) + micros(usage.ru_stime);
  task.read_bytes += static_cast<std::uint64_t>(usage.ru_inblock) * kBlock;
  task.written_bytes += static_cast<std::uint64_t>(usage.ru_oublock) * kBlock;
}

void Runner::reaped(pid_t pid, int status, const rusage& usage, Time now) {
  if (services_.reaped(pid, status, now)) return;
  auto peak = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  const auto main = mains_.find(pid);
  if (main != mains_.end()) {
    Running& task = running_.at(main->second);
    peak = own_peak_of(peak, task.borrowed);
    own_memory_.keep_small();
    mains_.erase(main);
    task.main_lives = false;
    task.status = status;
    add_usage(task, usage);
    task.peak = std::max(task.peak, peak > task.shared ? peak - task.shared : peak);
    task_processes_.main_ended(task.placement.slot);
    if (was_terminated(status)) task.whose_term_until = now + kWhoseTerm;
    sweep(task, now);
    return;
  }
  // A descendant that we had taken over.  Whoever is ending may have waited for it.
  std::vector<AttemptId> ending;
  for (auto& [id, task] : running_) {
    if (std::find(task.members.begin(), task.members.end(), pid) != task.members.end()) {
      add_usage(task, usage);
      task.peak = std::max(task.peak, peak);
    }
    if (task.sweep_at) ending.push_back(id);
  }
  for (const AttemptId& id : ending) {
    if (const auto at = running_.find(id); at != running_.end()) sweep(at->second, now);
  }
}

/// True where it can be told at little cost that no task has left processes behind.
bool Runner::nothing_adopted() {
  const std::vector<pid_t> children = children_of(::getpid());
  return std::all_of(children.begin(), children.end(), [this](pid_t child) {
    return mains_.contains(child) || task_processes_.is_ours(child);
  });
}

std::vector<pid_t> Runner::members_of(const Running& task) {
  if (task.group != nullptr) return task.group->members();
  if (!task.main_lives && nothing_adopted()) return {};
  auto members = task_processes_.members();
  return std::move(members[task.placement.slot]);
}

/// Podman's own processes tidy up behind a container that has ended; where they are killed before
/// they are done, its lock and its mounts stay.
bool Runner::is_tidied(Running& task, Time now) {
  if (task.removal.empty() || task.by_force || WIFSIGNALED(task.status)) return false;
  if (!task.tidied_until) task.tidied_until = now + kTidying;
  return now < *task.tidied_until && !members_of(task).empty();
}

/// Kills what is left of a task whose main process has ended, or all of one that is ended by force.
void Runner::sweep(Running& task, Time now) {
  task.sweep_at.reset();
  if (task.main_lives && !task.by_force) return;
  if (task.whose_term_until && now < *task.whose_term_until && !task.stopped_for) {
    task.sweep_at = task.whose_term_until;
    return;
  }
  if (task.main_lives) ::kill(-task.pid, SIGKILL);
  if (is_tidied(task, now)) {
    task.sweep_at = now + kFirstSweepPause;
    return;
  }
  task.members = members_of(task);
  bool any = false;
  for (const pid_t pid : task.members) {
    // One that may not be killed (it has become another user's) is not waited for.
    if (::kill(pid, SIGKILL) == 0) any = true;
  }
  if (!task.main_lives && !any) {
    // A batch system that ends us may signal the task just before us: then its end is ours.
    if (ended_by(task.status, SIGTERM) && !task.stopped_for && !std::exchange(task.doubted, true)) {
      task.sweep_at = now + kDoubt;
      return;
    }
    if (!waits_for_a_look(task, now)) finish(AttemptId(task.id));
    return;
  }
  task.sweep_pause = std::clamp(task.sweep_pause * 2, kFirstSweepPause, kLongestSweepPause);
  task.sweep_at = now + task.sweep_pause;
}

void Runner::finish(const AttemptId& id) {
  Running& task = running_.at(id);
  EndFacts facts;
  facts.status = task.status;
  facts.stopped_for = task.stopped_for;
  facts.stop_message = task.stop_message;
  if (task.container) {
    facts.container = container_end(task);
    facts.program = task.start.argv(0);
    remove_container(task);
  }
  if (task.group != nullptr) {
    facts.memory_kills = task.group->memory_kills() - task.kills_before;
    facts.memory_limit = task.limit;
  } else if (ended_by(task.status, SIGKILL)) {
    // Not by us: the counter around us tells whether it was for the memory of the batch job.
    const std::uint64_t kills = groups_.kills_around();
    if (kills > kills_told_ && !task.stopped_for) {
      facts.memory_kills = 1;
      ++kills_told_;
    }
  }
  facts.peak_memory = task.peak;
  facts.disk_is_full = task.status != 0 && is_full(task.runs_in);
  end(task, verdict_of(facts), true);
}

void Runner::keep_output(Running& task, wire::Result& result) {
  Capture& output = task.slot->output;
  Capture& error = task.slot->error;
  output.end();
  error.end();
  if (output.last_place() != 0 || error.last_place() != 0 || output.is_truncated() ||
      error.is_truncated()) {
    wire::LogPlace* log = result.mutable_log();
    log->set_file(pack_.name());
    log->set_last_out(output.last_place());
    log->set_last_err(error.last_place());
    log->set_out_bytes(output.kept());
    log->set_err_bytes(error.kept());
    log->set_truncated(output.is_truncated() || error.is_truncated());
  }
  for (const auto& [name, stream] : {std::pair{"stdout", &output}, std::pair{"stderr", &error}}) {
    if (stream->left_out() == 0) continue;
    const std::string said = std::string("of its ") + name + " " +
                             std::to_string(stream->left_out()) +
                             " bytes beyond the output limit of " +
                             std::to_string(task.start.output_limit()) + " are left out";
    result.set_message(result.message().empty() ? said : result.message() + "; " + said);
  }
  if (output.is_lost() || error.is_lost()) set_output_lost(result);
}

void Runner::keep_metrics(const Running& task, wire::Result& result) {
  Metrics metrics = read_metrics(task.slot->temporary);
  result.set_metrics(std::move(metrics.text));
  if (metrics.trouble.empty()) return;
  result.set_message(result.message().empty() ? metrics.trouble
                                              : result.message() + "; " + metrics.trouble);
}

wire::Result Runner::result_of(Running& task, const Verdict& verdict, bool ran) {
  wire::Result result;
  to_wire(task.id, result.mutable_attempt());
  set_failure(result, verdict.failure);
  // What was never started has none.
  result.set_exit_code(ran || verdict.exit_code != 0 ? verdict.exit_code : -1);
  result.set_signal(verdict.signal);
  result.set_message(verdict.message);
  result.set_missing_file(verdict.missing_file);
  if (!task.note.empty())
    result.set_message(verdict.message.empty() ? task.note : verdict.message + "; " + task.note);
  result.set_started_us(task.started_us);
  result.set_of_room(task.start.holds_room());
  result.set_ended_us(task.look ? task.look->ended_us : wall_clock_us());
  result.set_peak_memory(task.peak);
  result.set_cpu_us(task.cpu_us);
  result.set_read_bytes(task.read_bytes);
  result.set_written_bytes(task.written_bytes);
  // Who neither said how to bind it nor has a GPU that some are near does not ask.
  const bool says_which = task.start.cpu_bind() != 0 || task.start.threads_per_core() != 0;
  if (says_which || !task.placement.gpus.empty())
    for (const unsigned cpu : task.placement.cpus) result.add_cpus(cpu);
  if (const auto busy = task.gpu_use.busy()) {
    result.set_gpu_busy(*busy);
    result.set_gpu_memory(task.gpu_use.peak());
    result.set_gpu_energy_mj(task.gpu_use.energy_mj());
  }
  if (ran) keep_output(task, result);
  if (ran) keep_metrics(task, result);
  return result;
}

void Runner::end(Running& task, const Verdict& verdict, bool ran) {
  wire::Result result = result_of(task, verdict, ran);
  if (ran) task_processes_.ended(task.placement.slot);
  std::vector<wire::Output> outputs = outputs_to_publish(task.start, task.directory, ran, result);
  const bool staged = !outputs.empty();
  if (staged) {
    result.set_outputs_staged(true);
    result.set_stage_out(task.start.stage_out());
    if (result.stage_out()) {
      for (const wire::Output& output : outputs) result.add_published(output.place());
    }
  }
  const AttemptId id = task.id;
  const std::string directory = std::move(task.directory);
  if (!task.nodes.empty()) removals_.add(task.nodes);
  running_.erase(id);
  if (!staged && !directory.empty()) removals_.add(directory);
  callbacks_.ended(id, std::move(result), staged, directory, std::move(outputs));
}

}  // namespace hpcbatch::pilot
