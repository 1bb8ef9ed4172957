#include "pilot/pilot.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "wire/outbox.hpp"
#include "wire/result.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
// So many results make a frame of their own.
constexpr int kResultsInFrame = 4096;
constexpr std::size_t kBytesInFrame = std::size_t{1} << 20;

std::string text_of(const wire::PilotName& name) {
  return name.allocation + "." + std::to_string(name.rank);
}

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, number);
  return text;
}

/// The walltime less the margin.  The batch system knows best when its job ends: a job that was
/// started late by a slow prolog, or that was started again, is not as long as its file says.
std::optional<Time> usable_until(const wire::PilotFile& file, Time now) {
  std::optional<Duration> left;
  if (file.walltime.count() > 0) left = file.walltime;
  if (const char* end = std::getenv("SLURM_JOB_END_TIME")) {
    const auto there =
        std::chrono::system_clock::time_point(std::chrono::seconds(std::strtoll(end, nullptr, 10)));
    const Duration batch = there - std::chrono::system_clock::now();
    if (batch > Duration{} && left) left = std::min(*left, batch);
  }
  if (!left) return std::nullopt;
  return now + *left - file.margin;
}

std::uint64_t memory_of(const wire::PilotFile& file) {
  for (const auto& [name, amount] : file.capacity) {
    if (name == "memory") return static_cast<std::uint64_t>(amount / kWhole);
  }
  return 0;
}

bool is_written(const PackFile& pack, const wire::Result& result) {
  return result.log().file() != pack.name() ||
         (pack.holds(result.log().last_out()) && pack.holds(result.log().last_err()));
}

/// Of a result whose output is lost.  One with outputs is worth having without it.
void drop_log(wire::Result& result) {
  result.mutable_log()->Clear();
  if (result.outputs_staged()) {
    set_log_lost(result);
  } else {
    set_output_lost(result);
  }
}

std::string own_path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
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
      file_(file),
      name_{file.allocation, rank},
      incarnation_(wire::random_number()),
      history_(file, text_of(name_), incarnation_),
      work_(file.workspace + "/work/" + text_of(name_) + "." + hex(incarnation_)),
      node_(look_at_node(file, text_of(name_))),
      helpers_([this](pid_t pid) { task_processes_.ours(pid); }),
      removals_(helpers_),
      pack_(file.workspace, wire::log_file_name(name_, incarnation_)),
      workspace_(file.workspace, text_of(name_)),
      publisher_(
          helpers_, removals_, file.workspace,
          [this](const AttemptId& id, wire::Result result) {
            failure_of(result) == Failure::Ok ? history_.published(id) : history_.discarded(id);
            if (!is_written(pack_, result)) {
              result.mutable_log()->Clear();
              set_log_lost(result);
            }
            if (decide_.published(id, result.ByteSizeLong(), now_)) deliver(id, std::move(result));
          },
          [this](const std::string& why) { workspace_.failed(why, now_); }),
      runner_(loop_, pack_, groups_, removals_, task_processes_,
              Runner::Place{{text_of(name_), file.site},
                            work_,
                            node_.scratch,
                            node_.devices,
                            own_path(),
                            memory_of(file),
                            tasks_open_files},
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
                  [this](const AttemptId& id) {
                    if (unbegun_.erase(id) != 0) begun(id);
                    decide_.began(id, clock_now());
                  },
                  [this](const AttemptId& id) {
                    unbegun_.erase(id);
                    followers_.stop(id);
                    runner_.foresee_no_more(id, clock_now());
                    decide_.handed_back(id, clock_now());
                  },
                  [this](const std::string& why) { workspace_.failed(why, now_); }}),
      followers_(pack_,
                 [this](const AttemptId& id, unsigned stream, std::uint64_t offset,
                        std::size_t limit) -> std::optional<std::string> {
                   const Capture* capture = runner_.capture(id, stream);
                   return capture == nullptr ? std::nullopt
                                             : std::optional(capture->read(offset, limit));
                 }),
      decide_(Room(file.capacity, node_.cpus),
              Terms{usable_until(file, now_), file.margin, file.idle, until_found(file)}, now_),
      link_(loop_, std::move(path), file, rank,
            EngineLink::Callbacks{[this](const std::string& address) { link_up(address); },
                                  [this] {
                                    environments_.clear();
                                    followers_.stop_all();
                                    held_back_.clear();
                                    to_send_.clear();
                                    decide_.link_lost();
                                    history_.link_lost();
                                  },
                                  [this](wire::ToPilot& message) { on_message(message); },
                                  [this](wire::ToEngine& outgoing) { gather(outgoing); },
                                  [this] { decide_.given_up(); }},
            now_),
      usable_until_(usable_until(file, now_)) {
  take_signals(keeper_signal);
  if (Rehearsal::is_asked_for(file_.workspace)) {
    log_line("only rehearses: no task is run, all are said to have succeeded");
    rehearsal_.emplace([this](const AttemptId& id, wire::Result result) {
      task_ended(id, std::move(result), false, {}, {});
    });
  }
  log_line(groups_.description());
  if (!node_.cpus.empty())
    log_line("tasks are bound to " + std::to_string(node_.cpus.size()) + " cpus");
  for (std::string& left : left_over_scratch(file.scratch)) removals_.add(std::move(left));
  if (std::string why = read_outbox(); !why.empty()) node_.refusals.push_back(std::move(why));
  for (const std::string& refusal : node_.refusals) log_line("self-check failed: " + refusal);
  if (!node_.refusals.empty()) decide_.checks_failed(now_);
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
        decide_.keeper_died(now_);
      } else {
        log_line("told to end (signal " + std::to_string(signal) + ")");
        decide_.terminated(now_);
      }
    }
  });
}

void Pilot::reap() {
  int status = 0;
  rusage usage{};
  for (pid_t pid = 0; (pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0;) {
    if (helpers_.reaped(pid, status)) {
      task_processes_.not_ours(pid);
    } else {
      runner_.reaped(pid, status, usage, now_);
    }
  }
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
int Pilot::run() {
  while (!exit_code_) {
    const bool pack_was_lost = pack_.is_lost();
    if (pack_was_lost) decide_.workspace_failed();
    look_at_workspace();
    decide_.preparing(runner_.services().is_any_awaited());
    // Before what is given back because of it, which would come again at once.
    say_services();
    // What is done may bring the next event at once: a program that is not there ends as it starts.
    for (auto actions = decide_.decide(now_); !actions.empty(); actions = decide_.decide(now_)) {
      for (Action& action : actions) perform(action);
    }
    if (exit_code_) break;
    send_followed();
    pack_.flush();
    send_results();
    say_workspace();
    link_.tick(now_);
    std::optional<Time> until = decide_.next();
    for (const auto& next : {runner_.next(), rehearsal_ ? rehearsal_->next() : std::nullopt,
                             link_.next(), pack_.next(), workspace_.next()}) {
      if (next && (!until || *next < *until)) until = next;
    }
    const bool has_news =
        pack_.is_lost() != pack_was_lost || workspace_is_stuck_ == workspace_trouble().empty();
    if (more_to_follow_ || has_news) until = now_;
    const Time asleep = clock_now();
    const Time woke = loop_.wait(until);
    now_ = clock_now();
    if (until) woke_late(woke - std::max(*until, asleep));
    runner_.tick(now_);
    if (rehearsal_) rehearsal_->tick(now_);
    workspace_.tick(now_);
  }
  pack_.finish();
  send_results();
  link_.finish();
  // What is left in the workspace the engine removes; what is left on this node nobody does.
  if (!node_.scratch.empty()) removals_.remove_now(node_.scratch);
  removals_.remove_now(work_);
  log_line("ends: " + leaving_);
  history_.ended(leaving_);
  return *exit_code_;
}

const std::string& Pilot::workspace_trouble() const {
  return pack_.trouble().empty() ? workspace_.trouble() : pack_.trouble();
}

void Pilot::look_at_workspace() {
  const bool is_stuck = !workspace_trouble().empty();
  const bool was_stuck = std::exchange(workspace_is_stuck_, is_stuck);
  if (is_stuck) {
    decide_.workspace_stuck(now_);
    if (!leaving_.empty() || workspace_.is_hopeless(now_)) publisher_.give_up();
  } else if (was_stuck) {
    decide_.workspace_well(now_);
    publisher_.try_again();
  }
  if (pack_.trouble().empty()) return;
  // What would be lost is not given up sooner than running it again would take.
  std::chrono::milliseconds patience = kWorkspacePatience;
  for (const AttemptId& id : to_send_) {
    const auto at = results_.find(id);
    if (at == results_.end()) continue;
    const std::chrono::microseconds ran{at->second.ended_us() - at->second.started_us()};
    patience = std::max(patience, std::chrono::duration_cast<std::chrono::milliseconds>(ran));
  }
  pack_.set_patience(patience);
}

/// A batch system suspends a job by SIGSTOP, and extends its end when it goes on.
void Pilot::woke_late(Duration time) {
  if (time < kSuspended) return;
  log_line("was suspended for " +
           std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s");
  decide_.suspended(time);
  runner_.suspended(time);
  if (usable_until_) *usable_until_ += time;
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
    void operator()(const Stop& a) const {
      if (pilot.rehearsal_)
        return pilot.rehearsal_->stop(a.id, a.failure.value_or(Failure::Cancelled), a.message);
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
      pilot.results_.erase(a.id);
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
  if (!decide_.state_of(id)) leases_.erase(id);
}

void Pilot::launch(const Launch& action) {
  const auto at = leases_.find(action.id);
  Waiting lease = std::move(at->second);
  leases_.erase(at);
  if (lease.follow) followers_.follow(action.id, 0, 0);
  const bool is_served = lease.start->has_service() && !rehearsal_;
  if (is_served) {
    unbegun_.insert(action.id);
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
  if (rehearsal_) return rehearsal_->launch(action.id, *lease.start, now_);
  wire::Start start = *lease.start;
  // Of neighbours that came together it may be any.
  start.set_shown_index(start.shown_index() + action.id.index - start.attempt().index());
  to_wire(action.id, start.mutable_attempt());
  if (start.has_foreseen())
    runner_.foresee(action.id, start.foreseen(), std::move(lease.foreseen_base));
  runner_.launch(action.id, std::move(start), std::move(lease.base), action.placement, now_);
}

void Pilot::begun(const AttemptId& id) {
  started_.push_back(id);
  history_.attempt_started(id);
  if (link_.is_up()) added();
}

void Pilot::fail(const Fail& action) {
  // What ran before keeps its times and its log.
  const auto before = results_.find(action.id);
  wire::Result result = before == results_.end() ? wire::Result() : before->second;
  to_wire(action.id, result.mutable_attempt());
  // A task that has failed stays one that did, without what it wrote.
  if (before == results_.end() || failure_of(result) == Failure::Ok) {
    set_failure(result, action.failure);
    result.set_message(action.message);
  }
  result.set_outputs_staged(false);
  result.set_stage_out(false);
  leases_.erase(action.id);
  deliver(action.id, std::move(result));
}

void Pilot::task_ended(const AttemptId& id, wire::Result result, bool staged,
                       const std::string& directory, std::vector<wire::Output> outputs) {
  runner_.foresee_no_more(id, now_);
  if (unbegun_.erase(id) != 0) history_.attempt_started(id);
  history_.attempt_ended(id, result.failure(), staged);
  const bool wanted = decide_.ended(id, staged, result.ByteSizeLong(), now_);
  if (staged) publisher_.add(id, result, directory, std::move(outputs));
  if (!wanted) {
    followers_.stop(id);
  } else if (followers_.is_followed(id)) {
    followers_.ended(id, result.log());
    results_[id] = std::move(result);
    held_back_.push_back(id);
  } else {
    deliver(id, std::move(result));
  }
}

void Pilot::deliver(const AttemptId& id, wire::Result result) {
  results_[id] = std::move(result);
  send_result(id);
}

void Pilot::send_result(const AttemptId& id) {
  if (link_.is_up()) to_send_.push_back(id);
}

/// A result says where the task's output is, so the output is there first.
void Pilot::send_results() {
  std::vector<AttemptId> waiting;
  for (const AttemptId& id : std::exchange(to_send_, {})) {
    const auto at = results_.find(id);
    if (at == results_.end()) continue;
    wire::Result& result = at->second;
    if (!is_written(pack_, result) && !pack_.is_lost()) {
      waiting.push_back(id);
      continue;
    }
    if (!is_written(pack_, result)) drop_log(result);
    // Failures may have much to say.
    if (link_.outgoing().results_size() == 0) bytes_in_frame_ = 0;
    bytes_in_frame_ += result.ByteSizeLong();
    *link_.outgoing().add_results() = result;
    added();
    if (link_.outgoing().results_size() >= kResultsInFrame || bytes_in_frame_ >= kBytesInFrame)
      link_.send_now(now_);
  }
  to_send_ = std::move(waiting);
}

/// One that leaves room unused, or that somebody watches, is told at once; others may wait for
/// company.
void Pilot::added() {
  const bool urgent = decide_.is_short_of_work() || followers_.any() || !leaving_.empty();
  link_.added(urgent, now_);
}

void Pilot::send_followed() {
  more_to_follow_ = false;
  if (!link_.is_up() || !followers_.any()) return;
  const std::size_t room = kBacklog - std::min(kBacklog, link_.backlog());
  const bool more = followers_.send(room, [this](wire::Chunk chunk) {
    *link_.outgoing().add_chunks() = std::move(chunk);
    link_.added(true, now_);
  });
  if (more && room > 0) link_.send_now(now_);
  // A link that still has bytes to send wakes us when it has sent them; one that took all does not.
  more_to_follow_ = more && link_.backlog() < kBacklog;
  const auto sent =
      std::stable_partition(held_back_.begin(), held_back_.end(),
                            [this](const AttemptId& id) { return followers_.is_followed(id); });
  const std::vector<AttemptId> ready(sent, held_back_.end());
  held_back_.erase(sent, held_back_.end());
  for (const AttemptId& id : ready) send_result(id);
}

void Pilot::write_outbox() {
  pack_.flush();
  wire::Outbox box{name_, incarnation_, {}};
  for (const auto& [id, result] : results_) {
    if (result.outputs_staged()) continue;
    wire::Result left = result;
    if (!is_written(pack_, result)) drop_log(left);
    box.results.push_back(left.SerializeAsString());
  }
  const std::string path = file_.workspace + "/" + wire::outbox_name(name_);
  if (box.results.empty()) {
    ::unlink(path.c_str());
    return;
  }
  if (const auto written = wire::write_outbox(path, box); !written) {
    log_line(written.error().text);
    decide_.outbox_failed(now_);
    history_.outbox_failed();
  }
}

/// A batch system may start the same script twice: what the first left is delivered by the second.
/// One that cannot see it would write over it, and says why it must not go on.
std::string Pilot::read_outbox() {
  const std::string path = file_.workspace + "/" + wire::outbox_name(name_);
  if (::access(path.c_str(), F_OK) != 0)
    return errno == ENOENT ? "" : "outbox: cannot look at " + path + ": " + std::strerror(errno);
  const auto box = wire::read_outbox(path);
  if (!box && box.error().kind == Error::Kind::Transient) return "outbox: " + box.error().text;
  if (!box) {
    log_line(box.error().text);
    ::rename(path.c_str(), (path + ".damaged").c_str());
    return {};
  }
  for (const std::string& text : box->results) {
    wire::Result result;
    if (!result.ParseFromString(text)) continue;
    const AttemptId id = from_wire(result.attempt());
    decide_.found_result(id, text.size());
    results_[id] = std::move(result);
  }
  return {};
}

}  // namespace hpcbatch::pilot
