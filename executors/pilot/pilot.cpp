#include "pilot/pilot.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/processes/surroundings.hpp"
#include "wire/outbox.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace hpcbatch::pilot {
namespace {

// Chunks wait here instead of in memory when the link takes no more.
constexpr std::size_t kBacklog = std::size_t{1} << 20;
// Nothing but a stop makes the loop sleep that much longer than it asked for.
constexpr Duration kSuspended = std::chrono::seconds{5};
constexpr Duration kUntilFoundByFiles = std::chrono::minutes{3};
constexpr Duration kUntilFoundFarAway = std::chrono::seconds{10};
// With a workspace that cannot be written; longer where what waits for it took longer.
constexpr std::chrono::minutes kWorkspacePatience{10};

std::uint64_t memory_of(const wire::PilotFile& file) {
  for (const auto& [name, amount] : file.capacity) {
    if (name == "memory") return static_cast<std::uint64_t>(amount / kWhole);
  }
  return 0;
}

std::string own_program() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length <= 0 ? std::string() : std::string(path, static_cast<std::size_t>(length));
}

std::string own_path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
}

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

ContainerGround containers_here(const std::string& workspace,
                                const std::optional<rlimit>& open_files) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const std::string limit = variable("HPCBATCH_IMAGES_GB", "100");
  return {own_path(),
          own_program(),
          container_rule(variable("HPCBATCH_CONTAINERS", "")),
          variable("HPCBATCH_IMAGES", workspace + "/images"),
          std::strtoull(limit.c_str(), nullptr, 10) * kGiB,
          open_files};
}

std::vector<std::uint64_t> memory_of_gpus(const std::vector<GpuFacts>& gpus) {
  std::vector<std::uint64_t> memory;
  memory.reserve(gpus.size());
  for (const GpuFacts& facts : gpus) memory.push_back(facts.memory);
  return memory;
}

Room room_of(const wire::PilotFile& file, const Node& node) {
  std::vector<std::string> gpu_names;
  for (const GpuFacts& facts : node.gpus) gpu_names.push_back(facts.name);
  Room room(file.capacity, read_topology(node.cpus), gpu_names);
  for (unsigned device = 0; device < node.gpus.size(); ++device) {
    const GpuFacts& facts = node.gpus[device];
    if (facts.numa_node) room.gpu_is_near(device, *facts.numa_node);
    if (!facts.trouble.empty()) room.set_aside(device);
  }
  return room;
}

/// By files an engine is found late, and on another machine not at once.
Duration until_found(const wire::PilotFile& file) {
  using Kind = wire::Address::Kind;
  Duration longest{};
  for (const wire::Address& address : file.addresses) {
    if (address.kind == Kind::Unix) continue;
    longest =
        std::max(longest, address.kind == Kind::Spool ? kUntilFoundByFiles : kUntilFoundFarAway);
  }
  return longest;
}

}  // namespace

Pilot::Pilot(std::string path, const wire::PilotFile& file, std::uint32_t rank, int keeper_signal,
             std::optional<rlimit> tasks_open_files)
    : now_(clock_now()),
      setup_(take_before_setup(), environ),
      self_(identity_of(file, rank, now_)),
      history_(file, self_.text, self_.incarnation),
      node_(look_at_node(file, self_.text)),
      gpus_(
          loop_, [this](pid_t pid) { children_.of_tasks.ours(pid); },
          [this](const GpuSeen& seen) { gpu_seen(seen); }),
      sharing_([this](pid_t pid) { children_.of_tasks.ours(pid); }),
      workspace_{{file.workspace, wire::log_file_name(self_.name, self_.incarnation)},
                 {file.workspace, self_.text}},
      publisher_(
          children_.helpers, children_.removals, file.workspace,
          [this](const AttemptId& id, wire::Result result) {
            failure_of(result) == Failure::Ok ? history_.published(id) : history_.discarded(id);
            if (!results_.is_written(result)) {
              result.mutable_log()->Clear();
              set_log_lost(result);
            }
            if (decide_.published(id, result.ByteSizeLong(), now_)) deliver(id, std::move(result));
          },
          [this](const std::string& why) { workspace_.watch.failed(why, now_); }),
      runner_(loop_, workspace_.pack, children_.groups, children_.helpers, children_.removals,
              children_.of_tasks,
              Runner::Place{{self_.text, file.site},
                            self_.work,
                            node_.scratch,
                            node_.devices,
                            containers_here(file.workspace, tasks_open_files),
                            memory_of(file),
                            memory_of_gpus(node_.gpus),
                            tasks_open_files,
                            &sharing_,
                            &setup_},
              Runner::Callbacks{
                  [this](const AttemptId& id, wire::Result result, bool staged,
                         const std::string& directory, std::vector<wire::Output> outputs) {
                    task_ended(id, std::move(result), staged, directory, std::move(outputs));
                  },
                  [this](const AttemptId& id, std::uint64_t offset, bool ended) {
                    if (!link_.is_up()) return;
                    wire::InputWanted* wanted = link_.outgoing().add_input_wanted();
                    to_wire(id, wanted->mutable_attempt());
                    wanted->set_offset(offset);
                    wanted->set_ended(ended);
                    link_.added(true, now_);
                  },
                  [this](const MemoryVictim& victim) {
                    decide_.over_memory(victim.id, victim.message);
                  },
                  [this](const MemoryVictim& victim) {
                    decide_.over_gpu_memory(victim.id, victim.message);
                  },
                  [this](const AttemptId& id) {
                    if (starts_.unbegun.erase(id) != 0) begun(id);
                    decide_.began(id, clock_now());
                  },
                  [this](const AttemptId& id) {
                    starts_.unbegun.erase(id);
                    followers_.stop(id);
                    runner_.foresee_no_more(id, clock_now());
                    decide_.handed_back(id, clock_now());
                  },
                  [this](const std::string& why) { workspace_.watch.failed(why, now_); },
                  [this] { return gpus_.look_now(); }}),
      followers_(workspace_.pack,
                 [this](const AttemptId& id, unsigned stream, std::uint64_t offset,
                        std::size_t limit) -> std::optional<std::string> {
                   const Capture* capture = runner_.capture(id, stream);
                   return capture == nullptr ? std::nullopt
                                             : std::optional(capture->read(offset, limit));
                 }),
      decide_(room_of(file, node_),
              Terms{self_.usable_until, file.margin, file.idle, until_found(file)}, now_),
      link_(loop_, std::move(path), file, rank,
            EngineLink::Callbacks{[this](const std::string& address) { link_up(address); },
                                  [this] {
                                    leases_.link_lost();
                                    followers_.stop_all();
                                    results_.link_lost();
                                    decide_.link_lost();
                                    history_.link_lost();
                                  },
                                  [this](wire::ToPilot& message) { on_message(message); },
                                  [this](wire::ToEngine& outgoing) { gather(outgoing); },
                                  [this] { decide_.must_leave(LeaveCause::GivenUp, now_); }},
            now_),
      results_(self_, workspace_.pack, link_) {
  take_signals(keeper_signal);
  if (FakeRunner::is_asked_for(file.workspace)) {
    log_line("only rehearses: no task is run, all are said to have succeeded");
    fake_runner_.emplace([this](const AttemptId& id, wire::Result result) {
      task_ended(id, std::move(result), false, {}, {});
    });
  }
  log_line(children_.groups.description());
  if (!node_.cpus.empty())
    log_line("tasks are bound to " + std::to_string(node_.cpus.size()) + " cpus");
  for (std::string& left : left_over_scratch(file.scratch)) children_.removals.add(std::move(left));
  std::string why = results_.read_outbox(
      [this](const AttemptId& id, std::size_t size) { decide_.found_result(id, size); });
  if (!why.empty()) node_.refusals.push_back(std::move(why));
  for (const std::string& refusal : node_.refusals) log_line("self-check failed: " + refusal);
  for (std::size_t i = 0; i < node_.gpus.size(); ++i) {
    if (!node_.gpus[i].trouble.empty())
      log_line("GPU " + std::to_string(i) + " is set aside: " + node_.gpus[i].trouble);
  }
  if (!node_.refusals.empty())
    decide_.must_leave(LeaveCause::ChecksFailed, now_);
  else
    start_gpus(file);
}

void Pilot::start_gpus(const wire::PilotFile& file) {
  gpus_.start(file.gpu_helper, node_.gpus);
  if (file.shares_gpus_by_mps && !node_.gpus.empty())
    sharing_.start(node_.scratch + "/gpu-sharing", node_.gpus);
}

Pilot::~Pilot() {
  if (signals_) loop_.forget(signals_.get());
}

void Pilot::take_signals(int keeper_signal) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD, keeper_signal}) ::sigaddset(&set, signal);
  signals_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  loop_.watch(signals_.get(), EPOLLIN, [this, keeper_signal](std::uint32_t) {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const auto signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) {
        reap();
      } else if (signal == keeper_signal) {
        log_line("the process that keeps this pilot is gone: ending everything");
        decide_.must_leave(LeaveCause::KeeperDied, now_);
      } else {
        log_line("told to end (signal " + std::to_string(signal) + ")");
        decide_.must_leave(LeaveCause::Terminated, now_);
      }
    }
  });
}

void Pilot::reap() {
  int status = 0;
  rusage usage{};
  for (pid_t pid = 0; (pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0;) {
    if (children_.helpers.reaped(pid, status) || gpus_.reaped(pid) || sharing_.reaped(pid)) {
      children_.of_tasks.not_ours(pid);
    } else {
      runner_.reaped(pid, status, usage, now_);
    }
  }
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
int Pilot::run() {
  while (!exit_code_) {
    const bool pack_was_lost = workspace_.pack.is_lost();
    if (pack_was_lost) decide_.must_leave(LeaveCause::WorkspaceFailed, now_);
    look_at_workspace();
    decide_.preparing(runner_.services().is_any_awaited());
    // Before what is given back because of it, which would come again at once.
    say_services();
    // What is done may bring the next event at once: a program that is not there ends as it starts.
    for (auto actions = decide_.decide(now_); !actions.empty(); actions = decide_.decide(now_)) {
      for (Action& action : actions) perform(action);
    }
    if (exit_code_) break;
    const bool more_to_follow = send_followed();
    workspace_.pack.flush();
    send_results();
    say_workspace();
    link_.tick(now_);
    std::optional<Time> until = decide_.next();
    for (const auto& next : {runner_.next(), fake_runner_ ? fake_runner_->next() : std::nullopt,
                             link_.next(), workspace_.pack.next(), workspace_.watch.next()}) {
      if (next && (!until || *next < *until)) until = next;
    }
    const bool has_news = workspace_.pack.is_lost() != pack_was_lost ||
                          workspace_.is_stuck == workspace_.trouble().empty();
    if (more_to_follow || has_news) until = now_;
    const Time asleep = clock_now();
    const Time woke = loop_.wait(until);
    now_ = clock_now();
    if (until) woke_late(woke - std::max(*until, asleep));
    runner_.tick(now_);
    if (fake_runner_) fake_runner_->tick(now_);
    workspace_.watch.tick(now_);
  }
  workspace_.pack.finish();
  send_results();
  link_.finish();
  sharing_.stop();
  // What is left in the workspace the engine removes; what is left on this node nobody does.
  if (!node_.scratch.empty()) children_.removals.remove_now(node_.scratch);
  children_.removals.remove_now(self_.work);
  log_line("ends: " + leaving_);
  history_.ended(leaving_);
  return *exit_code_;
}

void Pilot::look_at_workspace() {
  const bool is_stuck = !workspace_.trouble().empty();
  const bool was_stuck = std::exchange(workspace_.is_stuck, is_stuck);
  if (is_stuck) {
    decide_.workspace_stuck(now_);
    if (!leaving_.empty() || workspace_.watch.is_hopeless(now_)) publisher_.give_up();
  } else if (was_stuck) {
    decide_.workspace_well(now_);
    publisher_.try_again();
  }
  if (workspace_.pack.trouble().empty()) return;
  // What would be lost is not given up sooner than running it again would take.
  workspace_.pack.set_patience(std::max<std::chrono::milliseconds>(
      kWorkspacePatience,
      std::chrono::duration_cast<std::chrono::milliseconds>(results_.longest_waiting())));
}

/// A batch system suspends a job by SIGSTOP, and extends its end when it goes on.
void Pilot::woke_late(Duration time) {
  if (time < kSuspended) return;
  log_line("was suspended for " +
           std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s");
  decide_.suspended(time);
  runner_.suspended(time);
  if (self_.usable_until) *self_.usable_until += time;
}

// --- what it decided ---------------------------------------------------------------------------

void Pilot::perform(Action& action) {
  struct {
    Pilot& pilot;
    void operator()(const Launch& a) const { pilot.launch(a); }
    void operator()(const Return& a) const {
      pilot.drop_lease(a.id);
      if (!pilot.link_.is_up()) return;
      to_wire(a.id, pilot.link_.outgoing().add_returned());
      pilot.added();
    }
    void operator()(const Signal& a) const {
      if (!pilot.fake_runner_) pilot.runner_.signal(a);
    }
    void operator()(const Stop& a) const {
      if (pilot.fake_runner_)
        return pilot.fake_runner_->stop(a.id, a.failure.value_or(Failure::Cancelled), a.message);
      pilot.runner_.stop(a.id, a.by_force, a.failure, a.message, pilot.now_);
    }
    void operator()(const Publish& a) const { pilot.publisher_.publish(a.id); }
    void operator()(const Discard& a) const {
      pilot.publisher_.discard(a.id);
      pilot.history_.discarded(a.id);
    }
    void operator()(const Fail& a) const { pilot.fail(a); }
    void operator()(const Forget& a) const {
      pilot.drop_lease(a.id);
      pilot.results_.forget(a.id);
    }
    void operator()(const SayLeaving& a) const {
      log_line("leaving: " + a.reason);
      pilot.leaving_ = a.reason;
      if (!pilot.link_.is_up()) return;
      pilot.link_.outgoing().set_leaving(true);
      pilot.link_.outgoing().set_leaving_reason(a.reason);
      pilot.link_.added(true, pilot.now_);
    }
    void operator()(const WriteOutbox&) const { pilot.write_outbox(); }
    void operator()(const Exit& a) const { pilot.exit_code_ = a.code; }
  } visitor{*this};
  std::visit(visitor, action);
}

/// Unless it has been leased again in the meantime.
void Pilot::drop_lease(const AttemptId& id) {
  if (!decide_.state_of(id)) leases_.drop(id);
}

namespace {

/// What it may still do before it is asked to end; in whole seconds, none too many.
void add_deadline(wire::Start& start, Duration left) {
  constexpr std::int64_t kSecond = 1'000'000;
  const auto now = static_cast<std::int64_t>(wall_clock_us());
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
  wire::Variable* variable = start.add_variables();
  variable->set_name("HPCBATCH_DEADLINE");
  variable->set_value(std::to_string((now + micros) / kSecond));
}

}  // namespace

void Pilot::launch(const Launch& action) {
  HeldLease lease = leases_.take(action.id);
  if (lease.follow) followers_.follow(action.id, 0, 0);
  if (lease.start->holds_room()) holds_room_.insert(action.id);
  const bool is_served =
      (lease.start->has_service() || !lease.start->container().empty()) && !fake_runner_;
  if (is_served) {
    starts_.unbegun.insert(action.id);
  } else {
    begun(action.id);
  }
  if (lease.start->environment() != 0 && !lease.base) {
    wire::Result result;
    set_failure(result, Failure::EngineError);
    result.set_message("the engine never sent environment " +
                       std::to_string(lease.start->environment()));
    to_wire(action.id, result.mutable_attempt());
    task_ended(action.id, std::move(result), false, {}, {});
    return;
  }
  if (fake_runner_) return fake_runner_->launch(action.id, *lease.start, now_);
  wire::Start start = *lease.start;
  // Of neighbours that came together it may be any.
  start.set_shown_index(start.shown_index() + action.id.index - start.attempt().index());
  to_wire(action.id, start.mutable_attempt());
  if (action.left) add_deadline(start, *action.left);
  if (start.has_foreseen())
    runner_.foresee(action.id, start.foreseen(), std::move(lease.foreseen_base));
  runner_.launch(action.id, std::move(start), std::move(lease.base), action.placement, now_);
}

void Pilot::begun(const AttemptId& id) {
  starts_.untold.push_back(id);
  holds_room_.contains(id) ? history_.room_held(id) : history_.attempt_started(id);
  if (link_.is_up()) added();
}

void Pilot::fail(const Fail& action) {
  // What ran before keeps its times and its log.
  const wire::Result* before = results_.find(action.id);
  wire::Result result = before ? *before : wire::Result();
  to_wire(action.id, result.mutable_attempt());
  // A task that has failed stays one that did, without what it wrote.
  if (!before || failure_of(result) == Failure::Ok) {
    set_failure(result, action.failure);
    result.set_message(action.message);
  }
  result.set_outputs_staged(false);
  result.set_stage_out(false);
  leases_.drop(action.id);
  deliver(action.id, std::move(result));
}

void Pilot::task_ended(const AttemptId& id, wire::Result result, bool staged,
                       const std::string& directory, std::vector<wire::Output> outputs) {
  runner_.foresee_no_more(id, now_);
  if (starts_.unbegun.erase(id) != 0) history_.attempt_started(id);
  if (holds_room_.erase(id) != 0)
    history_.room_freed(id);
  else
    history_.attempt_ended(id, result.failure(), staged);
  const bool wanted = decide_.ended(id, staged, result.ByteSizeLong(), now_);
  if (staged) publisher_.add(id, result, directory, std::move(outputs));
  if (!wanted) {
    followers_.stop(id);
  } else if (followers_.is_followed(id)) {
    followers_.ended(id, result.log());
    results_.keep(id, std::move(result));
    results_.hold_back(id);
  } else {
    deliver(id, std::move(result));
  }
}

void Pilot::deliver(const AttemptId& id, wire::Result result) {
  results_.keep(id, std::move(result));
  results_.send(id);
}

void Pilot::send_results() {
  results_.send_written(is_urgent(), now_);
}

/// One that leaves room unused, or that somebody watches, is told at once; others may wait for
/// company.
bool Pilot::is_urgent() const {
  return decide_.is_short_of_work() || followers_.any() || !leaving_.empty();
}

bool Pilot::send_followed() {
  if (!link_.is_up() || !followers_.any()) return false;
  const std::size_t room = kBacklog - std::min(kBacklog, link_.backlog());
  const bool more = followers_.send(room, [this](wire::Chunk chunk) {
    *link_.outgoing().add_chunks() = std::move(chunk);
    link_.added(true, now_);
  });
  if (more && room > 0) link_.send_now(now_);
  results_.send_held_back([this](const AttemptId& id) { return followers_.is_followed(id); });
  // A link that still has bytes to send wakes us when it has sent them; one that took all does not.
  return more && link_.backlog() < kBacklog;
}

void Pilot::write_outbox() {
  workspace_.pack.flush();
  if (const auto written = results_.write_outbox(); !written) {
    log_line(written.error().text);
    decide_.outbox_failed(now_);
    history_.outbox_failed();
  }
}

}  // namespace hpcbatch::pilot
