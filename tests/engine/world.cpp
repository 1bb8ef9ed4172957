#include "world.hpp"

#include "model/visit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hpcbatch {

using namespace std::chrono_literals;

World::World(std::uint32_t seed) : random_(seed) {
  Shape cpu{.name = "cpu", .walltime = 1h};
  cpu.capacity.set(kCpus, Amount::of(4));
  Shape wide = cpu;
  wide.name = "wide";
  wide.nodes = 2;
  Shape gpu = cpu;
  gpu.name = "gpu";
  gpu.capacity.set("gpus/a100", Amount::of(2));
  gpu.capacity.set("gpus/v100", Amount::of(1));
  Shape brief = cpu;
  brief.name = "brief";
  brief.walltime = 20min;
  brief.tags = {"ssd"};
  sites_ = {Site{.name = "here", .max_queued = 3, .max_running = 4, .shapes = {cpu, gpu}},
            Site{.name = "there", .max_queued = 2, .max_running = 2, .shapes = {wide, brief}}};
  configured_ = sites_;
  saved_.count_start();
  record(noted_at_start(saved_.snapshot(), sites_));
  engine_ = std::make_unique<Engine>(sites_, saved_.snapshot(), seed, now_);
}

void World::fail(const std::string& text) {
  if (wrong_.empty()) wrong_ = text;
}

void World::run(int steps) {
  for (int i = 0; i < steps && wrong_.empty(); ++i) step();
  make_peace();
  check_promises();
}

void World::step() {
  switch (below(20)) {
    case 0:
      return submit();
    case 1:
      return ask_something();
    case 2:
      return retry_something();
    case 3:
    case 4:
      return pass(chance(10) ? 1s * below(3000) : 1ms * below(20'000));
    case 5:
    case 6:
    case 7:
      return run_batch_systems();
    case 8:
    case 9:
      return answer();
    case 10:
      if (chance(10)) kill_engine();
      return;
    default:
      return run_pilot();
  }
}

// --- the engine --------------------------------------------------------------------------------

void World::feed(const Event& event) {
  const Actions actions = engine_->on(event, now_);
  engine_->check_invariants();
  // Killed at any point of what it does: what comes after is neither saved nor done.
  const std::size_t until =
      !peace_ && chance(1) ? below(static_cast<std::uint32_t>(actions.size()) + 1) : actions.size();
  for (std::size_t i = 0; i < until; ++i) {
    note(actions[i]);
    if (const std::string wrong = saved_.apply(actions[i]); !wrong.empty()) fail(wrong);
    record(noted_before(event, actions[i]));
    record(noted_after(actions[i]));
    perform(actions[i]);
  }
  if (until != actions.size()) kill_engine();
}

void World::kill_engine() {
  for (Process& process : processes_) {
    process.linked = false;
    process.inbox.clear();
  }
  welcomed_.clear();
  answers_.clear();
  start_engine(peace_ || !chance(15) ? sites_ : std::vector{sites_[below(2)]});
}

void World::start_engine(std::vector<Site> sites) {
  configured_ = std::move(sites);
  for (const Job& job : jobs_) {
    const bool there = std::any_of(configured_.begin(), configured_.end(),
                                   [&](const Site& s) { return s.name == job.site; });
    if (there) continue;
    out_of_reach_.insert(job.id);
    record_job("job-ended", job);  // as far as anybody can know who looks at the sites there are
  }
  saved_.count_start();
  record(noted_at_start(saved_.snapshot(), configured_));
  engine_ = std::make_unique<Engine>(configured_, saved_.snapshot(), 7, now_);
  engine_->check_invariants();
  feed(TimePassed{});
}

void World::record(const std::string& by, std::string what,
                   std::vector<std::pair<std::string, std::string>> facts) {
  history_.push_back({to_microseconds(now_), by, std::move(what), std::move(facts)});
}

/// In this world all is on disk at once.
void World::record(const std::vector<Noted>& noted) {
  for (const Noted& one : noted) {
    record("engine/" + std::to_string(saved_.snapshot().engine_start), one.what, one.facts);
  }
}

void World::check_promises() {
  for (const history::Breach& breach : history::check(history_, {.ended = true})) {
    fail(history::to_text(breach, history_));
  }
}

void World::note(const Action& action) {
  std::string text = std::to_string(action.index());
  const auto of_attempt = [&](const AttemptId& attempt) {
    text += fmt::format(" {}:{}:{}", to_string(attempt.task), attempt.number, attempt.epoch);
  };
  match(
      action,
      [&](const SaveLeases& a) {
        text += to_string(a.pilot);
        std::for_each(a.attempts.begin(), a.attempts.end(), of_attempt);
      },
      [&](const SaveResult& a) { of_attempt(a.attempt); },
      [&](const AcknowledgeResult& a) { of_attempt(a.attempt); },
      [&](const KillAttempt& a) { of_attempt(a.attempt); },
      [&](const OpenAllocation& a) { text += a.allocation.name; },
      [&](const CancelAllocation& a) { text += a.allocation.name; }, [](const auto&) {});
  fingerprint_ = fingerprint_ * 31 + std::hash<std::string>{}(text);
}

void World::perform(const Action& action) {
  match(
      action, [&](const OpenAllocation& a) { open(a); },
      [&](const CancelAllocation& a) { cancel(a); }, [&](const PollSite& a) { poll(a.site); },
      [&](const ReadOutbox& a) {
        answers_.push_back(OutboxRead{a.allocation, outboxes_[a.allocation]});
      },
      [&](const WelcomePilot& a) { welcomed_[a.pilot] = a.incarnation; },
      [&](const FencePilot& a) {
        if (Process* process = find(a.pilot, a.incarnation)) process->inbox.push_back(a);
      },
      [&](const SendLeases& a) { send(a.pilot, a); },
      [&](const RecallLeases& a) { send(a.pilot, a); },
      [&](const KillAttempt& a) { send(a.pilot, a); },
      [&](const AcknowledgeResult& a) { send(a.pilot, a); },
      [&](const PermitPublish& a) { send(a.pilot, a); },
      [&](const EndPilot& a) { send(a.pilot, a); }, [&](const DrainPilot& a) { send(a.pilot, a); },
      [](const auto&) {});
}

// --- clients -----------------------------------------------------------------------------------

NewArray World::any_array() {
  NewArray array;
  array.indices = chance(50) ? IndexSet(IndexRange{0, 0}) : IndexSet(IndexRange{1, 2 + below(12)});
  array.needs.amounts.set(kCpus, Amount::of(1 + below(4)));
  if (chance(40)) array.needs.time = 1min * (1 + below(50));
  if (chance(20)) array.needs.site = chance(50) ? "here" : "there";
  if (chance(15)) {
    array.needs.amounts.set(chance(50) ? kAnyGpu : "gpus/a100", Amount::of(1 + below(2)));
  } else if (chance(10)) {
    array.needs.tags = {"ssd"};
  }
  array.priority = static_cast<std::int32_t>(below(3));
  array.retries = below(3);
  array.max_running = chance(20) ? 1 + below(3) : 0;
  array.held = chance(10);
  array.streams_input = chance(5);
  return array;
}

void World::submit() {
  if (saved_.submitted() > 150) return;
  NewArray array = any_array();
  TasksSubmitted event{RequestId{1}, chance(50) ? "ann" : "bob", "", 0, {}, {}};
  const std::uint64_t known = saved_.snapshot().next_array;
  for (int i = 0; i < 2 && known > 1 && chance(40); ++i) {
    Dependency dependency{
        ArrayId{1 + below(static_cast<std::uint32_t>(known - 1))}, {}, Dependency::Kind(below(3))};
    const IndexSet& there = saved_.facts(dependency.array).indices;
    if (dependency.kind == Dependency::Kind::EachSuccess) {
      if (!array.after.empty()) continue;
      array.indices = there;
      // Often with gaps: not every one of them has a successor.
      if (chance(50)) array.indices.remove(IndexRange{2 + below(4), 5 + below(4)});
      if (array.indices.empty()) array.indices = there;
    } else if (chance(30)) {
      dependency.index = there.ranges().back().first;
    }
    array.after.push_back(dependency);
    if (!engine_->tasks().find(dependency.array))
      event.ended.push_back(saved_.ended(dependency.array));
  }
  event.arrays.push_back(std::move(array));
  feed(event);
}

void World::ask_something() {
  const std::uint64_t known = saved_.snapshot().next_array;
  if (known == 1) return;
  Selection some{ArrayId{1 + below(static_cast<std::uint32_t>(known - 1))}, std::nullopt};
  if (chance(60)) some.indices = IndexSet(IndexRange{below(8), 8});
  switch (below(4)) {
    case 0:
      return feed(CancelAsked{RequestId{1}, {some}});
    case 1:
      return feed(HoldAsked{RequestId{1}, {some}, true});
    default:
      return feed(HoldAsked{RequestId{1}, {some}, false});
  }
}

void World::retry_something() {
  const std::uint64_t known = saved_.snapshot().next_array;
  if (known == 1 || !chance(30)) return;
  const ArrayId id{1 + below(static_cast<std::uint32_t>(known - 1))};
  RetryAsked event{RequestId{1}, {saved_.revived(id, saved_.facts(id).indices)}, {}};
  if (event.arrays[0].array.indices.empty()) return;
  for (const Dependency& dependency : saved_.facts(id).after) {
    if (!saved_.is_live(dependency.array)) event.ended.push_back(saved_.ended(dependency.array));
  }
  feed(event);
}

void World::pass(Duration time) {
  now_ += time;
  feed(TimePassed{});
}

/// Nothing goes wrong any more: now all must end, without anybody's help.
void World::make_peace() {
  peace_ = true;
  if (configured_.size() != sites_.size()) kill_engine();
  for (int i = 0; i < 3000 && wrong_.empty(); ++i) {
    if (saved_.results() == saved_.submitted() && engine_->is_idle()) return;
    for (std::uint64_t array = 1; array < saved_.snapshot().next_array && i % 50 == 0; ++array) {
      feed(HoldAsked{RequestId{1}, {{ArrayId{array}, std::nullopt}}, false});
    }
    pass(1s * below(120));
    run_batch_systems();
    while (!answers_.empty()) answer();
    for (std::size_t n = 2 * processes_.size(); n > 0; --n) run_pilot();
  }
  std::string stuck;
  for (const auto& [id, array] : engine_->tasks().arrays()) {
    IndexSet open = array.facts.indices;
    open.remove(array.ok);
    open.remove(array.not_ok);
    const TaskId first{id, open.ranges().back().first};
    const auto why = engine_->explain(first, now_);
    stuck +=
        fmt::format("; {}: {} ({})", to_string(first), why->text, fmt::join(why->details, ", "));
  }
  fail(fmt::format("{} of {} tasks have ended, {} leases, {} allocations{}", saved_.results(),
                   saved_.submitted(), engine_->pilots().leases().size(),
                   engine_->sites().allocations().size(), stuck));
}

}  // namespace hpcbatch
