#include "pilot_process.hpp"

#include "pilot/policy/decide.hpp"
#include "wire/outbox.hpp"
#include "world.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

namespace {

// As the real one (pilot.cpp).
constexpr Duration kSuspended = 5s;
constexpr Duration kPublishing = 10ms;

pilot::Time steady_time(Time time) {
  return pilot::Time{} + std::chrono::hours{1} + (time - Clock::kBegin);
}

pilot::Amounts amounts_of(const Resources& capacity) {
  pilot::Amounts amounts;
  for (const auto& [name, amount] : capacity.entries()) amounts.emplace_back(name, amount.ticks);
  return amounts;
}

std::string task_name(const pilot::AttemptId& id) {
  return to_string(TaskId{ArrayId{id.array}, id.index});
}

}  // namespace

PilotProcess::PilotProcess(World& world, PilotId id, std::uint64_t incarnation, std::string number,
                           Node node, Times times)
    : world_(world),
      id_(std::move(id)),
      incarnation_(incarnation),
      number_(std::move(number)),
      node_(std::move(node)),
      times_(times),
      draw_(world.draw({'p', incarnation})) {}

std::string PilotProcess::name() const {
  return to_string(id_) + "/" + std::to_string(incarnation_);
}

pilot::Time PilotProcess::steady() const {
  return steady_time(world_.clock.now());
}

void PilotProcess::begin() {
  if (gone_) return;
  // Without its file it does not know what it is for.
  if (!world_.workspace.pilot_files.contains(id_.allocation.name)) return kill();
  now_ = steady();
  const Duration margin = end_margin(times_.walltime);
  if (times_.walltime != Duration{}) usable_until_ = now_ + times_.walltime - margin;
  decide_.emplace(pilot::Room(amounts_of(node_.capacity), {}),
                  pilot::Terms{usable_until_, margin, times_.idle}, now_);
  record("pilot-started", {{"idle_us", std::to_string(times_.idle.count())}});
  read_outbox();
  if (node_.capacity.gpus() > Amount{} && draw_.chance(15)) {
    world_.clock.after(draw_.between(1s, 20min), [self = shared_from_this()] {
      self->hears([self] { self->gpu_breaks(); });
    });
  }
  if (node_.unfit) {
    world_.count("fault unfit_node");
    decide_->must_leave(pilot::LeaveCause::ChecksFailed, now_);
  }
  connect();
  turn();
}

bool PilotProcess::holds(const AttemptId& attempt) const {
  return decide_ && decide_->state_of({attempt.task.array.value, attempt.task.index, attempt.number,
                                       attempt.epoch});
}

bool PilotProcess::is_in_trouble() const {
  constexpr Duration kMoment = 5s;
  return frozen_since_ || world_.clock.now() - thawed_at_ < kMoment || !link_ ||
         link_->is_troubled();
}

// --- its life ----------------------------------------------------------------------------------

void PilotProcess::hears(std::function<void()> what) {
  if (gone_ || !decide_) return;
  if (frozen_since_) {
    while_frozen_.push_back(std::move(what));
    return;
  }
  what();
  if (!turning_) turn();
}

/// One turn of its loop: what came since the last one was heard at that one's time.
void PilotProcess::turn() {
  if (gone_ || !decide_ || frozen_since_) return;
  turning_ = true;
  now_ = steady();
  for (auto actions = decide_->decide(now_); !actions.empty(); actions = decide_->decide(now_)) {
    for (pilot::Action& action : actions) {
      perform(action);
      if (gone_) return;
    }
  }
  turning_ = false;
  arm(decide_->next());
}

void PilotProcess::arm(std::optional<pilot::Time> at) {
  if (!at) return;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*at - now_);
  const Time wake = world_.clock.now() + std::max<Duration>(wait, 0us);
  if (wakes_at_ && *wakes_at_ <= wake && *wakes_at_ > world_.clock.now()) return;
  wakes_at_ = wake;
  world_.clock.at(wake, [self = shared_from_this(), wake] {
    if (self->wakes_at_ != wake) return;
    self->wakes_at_.reset();
    self->turn();
  });
}

void PilotProcess::terminate() {
  if (gone_) return;
  if (!decide_) return kill();  // its script is not that far yet
  hears([self = shared_from_this()] {
    self->decide_->must_leave(pilot::LeaveCause::Terminated, self->now_);
  });
}

void PilotProcess::kill() {
  if (std::exchange(gone_, true)) return;
  killed_ = true;
  if (decide_) {
    world_.observer.killed(*this);
    world_.record("outside", "pilot-killed", {{"process", name()}});
  }
  tasks_.clear();
  while_frozen_.clear();
  if (link_) link_->vanish(Link::End::Pilot);
  world_.batch.pilot_gone(shared_from_this());
}

void PilotProcess::freeze(Duration length, bool tasks_too) {
  if (gone_ || !decide_ || frozen_since_) return;
  frozen_since_ = world_.clock.now();
  tasks_frozen_ = tasks_too;
  thaws_at_ = world_.clock.now() + length;
  world_.record("outside", "pilot-stopped", {{"process", name()}});
  world_.clock.at(thaws_at_, [self = shared_from_this(), at = thaws_at_] {
    if (self->thaws_at_ == at) self->thaw();
  });
}

void PilotProcess::thaw() {
  if (gone_ || !frozen_since_) return;
  const Duration stood = world_.clock.now() - *std::exchange(frozen_since_, std::nullopt);
  thawed_at_ = world_.clock.now();
  world_.record("outside", "pilot-continued", {{"process", name()}});
  for (auto& what : std::exchange(while_frozen_, {})) {
    what();
    if (gone_) return;
  }
  if (tasks_frozen_) {
    for (auto& [id, task] : tasks_) {
      if (task.ends != Time::max()) end_task_at(task, task.ends + stood);
    }
  }
  if (stood >= kSuspended) {
    decide_->suspended(stood);
    if (usable_until_) *usable_until_ += stood;
  }
  turn();
}

void PilotProcess::lose_link() {
  if (link_) link_->cut();
}

void PilotProcess::world_ends() {
  gone_ = true;
  while_frozen_.clear();
  if (link_) link_->vanish(Link::End::Pilot);
}

void PilotProcess::exit() {
  if (std::exchange(gone_, true)) return;
  send_now();
  if (link_) link_->close(Link::End::Pilot);
  tasks_.clear();
  record("pilot-ended", {{"reason", leaving_}});
  world_.observer.exited(*this);
  world_.batch.pilot_gone(shared_from_this());
}

// --- what it decided ---------------------------------------------------------------------------

void PilotProcess::perform(pilot::Action& action) {
  world_.observer.pilot_action(action);
  struct {
    PilotProcess& self;
    void operator()(const pilot::Launch& a) const { self.launch(a); }
    void operator()(const pilot::Return& a) const {
      if (!self.up_) return;
      pilot::to_wire(a.id, self.outgoing_.add_returned());
      self.added(true);
    }
    void operator()(const pilot::Signal&) const {}
    void operator()(const pilot::Stop& a) const { self.stop(a); }
    void operator()(const pilot::Publish& a) const { self.publish(a.id); }
    void operator()(const pilot::Discard& a) const {
      self.staged_.erase(a.id);
      self.record_attempt("discarded", a.id);
    }
    void operator()(const pilot::Fail& a) const { self.fail(a); }
    void operator()(const pilot::Forget& a) const { self.results_.erase(a.id); }
    void operator()(const pilot::SayLeaving& a) const {
      self.leaving_ = a.reason;
      if (!self.up_) return;
      self.outgoing_.set_leaving(true);
      self.outgoing_.set_leaving_reason(a.reason);
      self.added(true);
    }
    void operator()(const pilot::WriteOutbox&) const { self.write_outbox(); }
    void operator()(const pilot::Exit&) const { self.exit(); }
  } visitor{*this};
  std::visit(visitor, action);
}

/// It lasts until it is killed, or breaks.
void PilotProcess::launch_claim(const pilot::Launch& action) {
  record_attempt("room-held", action.id);
  world_.observer.claim_started(*this, action.id, node_.capacity);
  if (up_) added(false);
  Task& task = tasks_[action.id];
  task.run = ++runs_;
  task.id = action.id;
  task.is_claim = true;
  task.ends = Time::max();
  task.result.set_of_room(true);
  if (!draw_.of({'n', action.id.epoch}).chance(5)) return;
  world_.count("fault claim_breaks");
  set_failure(task.result, Failure::OomTask);
  end_task_at(task, world_.clock.now() + draw_.between(1ms, 20s));
}

void PilotProcess::launch(const pilot::Launch& action) {
  started_.push_back(action.id);
  if (claims_.contains(action.id)) return launch_claim(action);
  record_attempt("attempt-started", action.id);
  const Behaviour does =
      world_.users.behaviour(TaskId{ArrayId{action.id.array}, action.id.index}, action.id.number);
  world_.observer.attempt_started(*this, action.id, node_.capacity);
  if (up_) added(false);
  Task& task = tasks_[action.id];
  task.run = ++runs_;
  task.id = action.id;
  task.staged = does.has_outputs;
  set_failure(task.result, does.failure);
  Duration takes = does.takes;
  if (node_.bad) {
    world_.count("fault bad_node");
    takes = draw_.between(1ms, 100ms);
    constexpr std::array kHow{Failure::GpuError, Failure::ContainerFailed, Failure::StageInFailed,
                              Failure::ToolFailed};
    set_failure(task.result, kHow.at(incarnation_ % kHow.size()));
  }
  if (does.kills_its_pilot) {
    // Often before anybody has heard that it has started.
    const Duration soon = draw_.chance(50) ? draw_.between(0ms, 10ms) : draw_.between(10ms, 5s);
    world_.clock.after(soon, [self = shared_from_this(), id = action.id, run = task.run] {
      const auto there = self->tasks_.find(id);
      if (there != self->tasks_.end() && there->second.run == run) self->kill();
    });
    takes = std::max<Duration>(takes, 10s);
  }
  const Time wall = world_.clock.now() + node_.wall_clock;
  task.result.set_started_us(to_microseconds(wall));
  end_task_at(task, world_.clock.now() + takes);
}

/// The first of them, which is set aside; the others go on.
void PilotProcess::gpu_breaks() {
  world_.count("fault gpu_breaks");
  decide_->gpu_broke(0, "it has fallen off the bus", now_);
  if (!up_) return;
  put_capacity(*outgoing_.mutable_gpus()->mutable_capacity());
  added(true);
}

void PilotProcess::end_task_at(Task& task, Time at) {
  task.ends = at;
  world_.clock.at(at, [self = shared_from_this(), id = task.id, run = task.run, at] {
    const auto there = self->tasks_.find(id);
    if (self->gone_ || there == self->tasks_.end() || there->second.run != run ||
        there->second.ends != at)
      return;
    if (self->frozen_since_ && self->tasks_frozen_) return;  // thawing sets a new end
    self->hears([self, id, run] { self->task_ended(id, run); });
  });
}

void PilotProcess::stop(const pilot::Stop& action) {
  const auto at = tasks_.find(action.id);
  if (at == tasks_.end()) return;
  Task& task = at->second;
  if (action.failure && !task.failure) {
    task.failure = action.failure;
    task.message = action.message;
  }
  // Some do not listen to TERM.
  const bool listens = (action.id.array + action.id.index) % 5 != 0;
  if (action.by_force || listens) {
    end_task_at(task, std::min(task.ends, world_.clock.now() + draw_.between(1ms, 300ms)));
  }
}

void PilotProcess::task_ended(const pilot::AttemptId& id, std::uint64_t run) {
  const auto at = tasks_.find(id);
  if (at == tasks_.end() || at->second.run != run) return;
  Task task = std::move(at->second);
  tasks_.erase(at);
  wire::Result& result = task.result;
  pilot::to_wire(id, result.mutable_attempt());
  if (task.failure) {
    set_failure(result, *task.failure);
    result.set_message(task.message);
  }
  result.set_ended_us(to_microseconds(world_.clock.now() + node_.wall_clock));
  if (task.is_claim) {
    claims_.erase(id);
    record_attempt("room-freed", id);
    world_.observer.claim_ended(*this, id);
    if (decide_->ended(id, false, result.ByteSizeLong(), now_)) deliver(id, std::move(result));
    return;
  }
  const bool staged = task.staged && failure_of(result) == Failure::Ok;
  result.set_outputs_staged(staged);
  record_attempt("attempt-ended", id, result.failure(), staged);
  world_.observer.attempt_ended(*this, id, result.failure(), staged);
  const bool wanted = decide_->ended(id, staged, result.ByteSizeLong(), now_);
  if (staged) staged_[id] = result;
  if (wanted) deliver(id, std::move(result));
}

void PilotProcess::publish(const pilot::AttemptId& id) {
  world_.clock.after(kPublishing, [self = shared_from_this(), id] {
    self->hears([self, id] {
      wire::Result result = self->staged_[id];
      self->staged_.erase(id);
      result.set_outputs_staged(false);
      self->record_attempt("published", id);
      self->world_.observer.published(*self, id);
      if (self->decide_->published(id, result.ByteSizeLong(), self->now_))
        self->deliver(id, std::move(result));
    });
  });
}

void PilotProcess::fail(const pilot::Fail& action) {
  const auto before = results_.find(action.id);
  wire::Result result = before == results_.end() ? wire::Result() : before->second;
  pilot::to_wire(action.id, result.mutable_attempt());
  set_failure(result, action.failure);
  result.set_message(action.message);
  result.set_outputs_staged(false);
  deliver(action.id, std::move(result));
}

void PilotProcess::deliver(const pilot::AttemptId& id, wire::Result result) {
  if (up_) {
    *outgoing_.add_results() = result;
    added(!leaving_.empty() || decide_->is_short_of_work());
  }
  results_[id] = std::move(result);
}

void PilotProcess::write_outbox() {
  if (world_.clock.now() < world_.workspace.unwritable_until) {
    world_.count("fault fail_outbox");
    record("outbox-failed");
    return decide_->outbox_failed(now_);
  }
  std::vector<std::string> left;
  for (const auto& [id, result] : results_) {
    if (!result.outputs_staged()) left.push_back(result.SerializeAsString());
  }
  world_.observer.outbox_written(*this);
  if (left.empty()) {
    world_.workspace.outboxes.erase(to_string(id_));
  } else {
    world_.workspace.outboxes[to_string(id_)] = std::move(left);
  }
}

void PilotProcess::read_outbox() {
  const auto at = world_.workspace.outboxes.find(to_string(id_));
  if (at == world_.workspace.outboxes.end()) return;
  for (const std::string& text : at->second) {
    wire::Result result;
    result.ParseFromString(text);
    const pilot::AttemptId id = pilot::from_wire(result.attempt());
    decide_->found_result(id, text.size());
    results_[id] = std::move(result);
  }
}

void PilotProcess::record(std::string what,
                          std::vector<std::pair<std::string, std::string>> facts) {
  world_.record("pilot/" + name(), std::move(what), std::move(facts));
}

void PilotProcess::record_attempt(std::string what, const pilot::AttemptId& id,
                                  const std::string& failure, bool staged) {
  std::vector<std::pair<std::string, std::string>> facts{{"task", task_name(id)},
                                                         {"attempt", std::to_string(id.number)},
                                                         {"epoch", std::to_string(id.epoch)}};
  if (!failure.empty()) facts.emplace_back("failure", failure);
  if (staged) facts.emplace_back("staged", "1");
  record(std::move(what), std::move(facts));
}

}  // namespace hpcbatch::clockwork
