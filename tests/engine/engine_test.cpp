#include "engine_test.hpp"

#include "model/check.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

namespace hpcbatch {

// --- what is submitted -------------------------------------------------------------------------

New::New() {
  indices.add(0);
  needs.amounts.set(kCpus, Amount::of(1));
}
New& New::array(std::uint32_t first, std::uint32_t last) {
  indices = IndexSet(IndexRange{first, last});
  return *this;
}
New& New::cpus(double count) {
  needs.amounts.set(kCpus, Amount::of_fraction(count));
  return *this;
}
New& New::memory(std::int64_t bytes) {
  needs.amounts.set(kMemory, Amount::of(bytes));
  return *this;
}
New& New::gpus(const std::string& kind, std::int64_t count) {
  needs.amounts.set(kind, Amount::of(count));
  return *this;
}
New& New::nodes(std::uint32_t count) {
  needs.nodes = count;
  return *this;
}
New& New::time(Duration limit) {
  needs.time = limit;
  return *this;
}
New& New::on(const std::string& site) {
  needs.site = site;
  return *this;
}
New& New::not_on(const std::string& site) {
  needs.not_on.push_back(site);
  return *this;
}
New& New::files_brought_to(std::vector<std::string> sites, bool of_each) {
  needs.staged_to = std::move(sites);
  needs.own_files = of_each;
  return *this;
}
New& New::tag(const std::string& name) {
  needs.tags.push_back(name);
  return *this;
}
New& New::served_by(const std::string& service) {
  needs.service = service;
  return *this;
}
New& New::urgency(std::int32_t value) {
  priority = value;
  return *this;
}
New& New::may_fail(std::uint32_t times) {
  retries = times;
  return *this;
}
New& New::at_once(std::uint32_t count) {
  max_running = count;
  return *this;
}
New& New::give_up_after(std::uint32_t failures, bool ends_running) {
  give_up_at = failures + 1;
  gives_up_running = ends_running;
  return *this;
}
New& New::on_hold() {
  held = true;
  return *this;
}
New& New::reads_stream() {
  streams_input = true;
  return *this;
}
New& New::submitted_by(TaskId task) {
  within = task;
  return *this;
}
New& New::wait_for(const std::string& task, Dependency::Kind kind) {
  const auto dot = task.find('.');
  Dependency dependency{ArrayId{std::stoull(task.substr(0, dot))}, std::nullopt, kind};
  if (dot != std::string::npos)
    dependency.index = static_cast<std::uint32_t>(std::stoul(task.substr(dot + 1)));
  after.push_back(dependency);
  return *this;
}

Shape cpu_shape(const std::string& name) {
  Shape shape{.name = name, .walltime = 1h + 2min};
  shape.capacity.set(kCpus, Amount::of(4));
  shape.capacity.set(kMemory, Amount::of(std::int64_t{16} << 30));
  return shape;
}

Site site_of(const std::string& name, std::vector<Shape> shapes) {
  Site site{.name = name};
  site.max_queued = 8;
  site.shapes = std::move(shapes);
  return site;
}

Site patient(Site site) {
  site.waiting_cost = 0;
  return site;
}

// --- given -------------------------------------------------------------------------------------

EngineTest::EngineTest() {
  walks_invariants = true;
  given({site_of("here", {cpu_shape()})});
}

void EngineTest::given(std::vector<Site> sites) {
  sites_ = std::move(sites);
  saved_ = {};
  saved_.count_start();
  engine_ = std::make_unique<Engine>(sites_, saved_.snapshot(), saved_.live_arrays(), 1, now_);
}

void EngineTest::given_pilot(Duration left, Resources capacity) {
  submit(New().cpus(0.1));  // of a class of its own, of which nothing is learned
  accepts("A");
  registers("A0", left, {}, std::move(capacity));
  ends("1");
  forget_what_was_asked();
}

void EngineTest::TearDown() {
  if (!HasFatalFailure()) expect_nothing();
}

// --- happens -----------------------------------------------------------------------------------

void EngineTest::happens(const Event& event) {
  const Actions actions = engine_->on(event, now_);
  engine_->check_invariants();
  std::vector<std::string> polled;
  for (const Action& action : actions) {
    ASSERT_EQ(saved_.apply(action), "");
    if (const auto* poll = std::get_if<PollSite>(&action)) polled.push_back(poll->site);
    for (std::string& line : show(action)) asked_.push_back(std::move(line));
  }
  for (const std::string& site : polled) answer_poll(site);
}

void EngineTest::answer_poll(const std::string& site) {
  ++polls_;
  if (polls_hang_) return;
  if (!polls_succeed_) return happens(SitePollFailed{site, "no contact"});
  SitePolled polled{site, {}, now_};
  for (const auto& [id, job] : batch_) {
    if (batch_sites_.at(id) == site) polled.jobs.push_back(job);
  }
  happens(polled);
}

/// As the runtime does: TimePassed when the engine wants it.
void EngineTest::after(Duration time) {
  const Time until = now_ + time;
  while (true) {
    const auto wake = engine_->next_wake();
    if (!wake || *wake > until) break;
    ASSERT_GT(*wake, now_) << "the engine wants to be woken at once, for ever";
    now_ = *wake;
    happens(TimePassed{});
    if (HasFatalFailure()) return;
  }
  now_ = until;
  happens(TimePassed{});
}

ArrayId EngineTest::submit(const New& task, const std::string& client) {
  TasksSubmitted event{RequestId{++requests_}, client, "", 0, {task}, {}};
  for (const Dependency& dependency : task.after) {
    if (!engine_->tasks().find(dependency.array))
      event.ended.push_back(saved_.ended(dependency.array));
  }
  happens(event);
  return ArrayId{saved_.snapshot().next_array - 1};
}

namespace {

Selection selection(const std::string& tasks) {
  const auto dot = tasks.find('.');
  Selection selection{ArrayId{std::stoull(tasks.substr(0, dot))}, std::nullopt};
  if (dot != std::string::npos) selection.indices = parse_index_set(tasks.substr(dot + 1));
  return selection;
}

}  // namespace

void EngineTest::submit_much() {
  submit(New().array(1, 10'000).time(1h));
  forget_what_was_asked();
}

void EngineTest::cancel(const std::string& tasks) {
  happens(CancelAsked{RequestId{++requests_}, {selection(tasks)}});
}
void EngineTest::hold(const std::string& tasks, bool on) {
  happens(HoldAsked{RequestId{++requests_}, {selection(tasks)}, on});
}

void EngineTest::retry(const std::vector<std::string>& tasks, const NeedsChange& change) {
  RetryAsked event{RequestId{++requests_}, {}, {}};
  std::set<ArrayId> named;
  for (const std::string& name : tasks) {
    const Selection wanted = selection(name);
    named.insert(wanted.array);
    event.arrays.push_back(
        saved_.revived(wanted.array, wanted.indices.value_or(saved_.facts(wanted.array).indices)));
  }
  for (RevivedArray& revived : event.arrays) {
    revived.has_new_needs = change.any();
    revived.array.needs = changed(revived.array.needs, change);
    for (const Dependency& dependency : revived.array.after) {
      if (named.contains(dependency.array) || saved_.is_live(dependency.array)) continue;
      event.ended.push_back(saved_.ended(dependency.array));
    }
  }
  happens(event);
}

void EngineTest::accepts(const std::string& allocation_name) {
  batch(allocation_name, BatchState::Queued);
  happens(AllocationAccepted{allocation(allocation_name), "100" + allocation_name});
}

void EngineTest::refuses(const std::string& allocation_name, Refusal refusal,
                         const std::string& text) {
  happens(AllocationRefused{allocation(allocation_name), refusal, text});
}

void EngineTest::registers(const std::string& name, Duration left,
                           std::vector<HeldAttempt> held_there, Resources capacity,
                           std::uint64_t confirmed_by) {
  const PilotId id = pilot(name);
  if (capacity.empty()) {
    capacity.set(kCpus, Amount::of(4));
    capacity.set(kMemory, Amount::of(std::int64_t{16} << 30));
  }
  batch(letter_of(id.allocation), BatchState::Running);
  PilotRegistered event{
      id, 7, node_, capacity, left, std::move(held_there), "100" + letter_of(id.allocation), {}};
  event.confirmed_by = confirmed_by;
  happens(event);
}

void EngineTest::disconnects(const std::string& name) {
  happens(PilotDisconnected{pilot(name)});
}

void EngineTest::starts(const std::string& names) {
  for (const TaskId id : tasks(names))
    happens(AttemptsStarted{holders_.at(id), {attempts_.at(id)}});
}

EndAtPilot EngineTest::result(const std::string& name, Failure failure) const {
  EndAtPilot ended{{attempt(name), {.failure = failure}, false}, holders_.at(task(name))};
  ended.outcome.ended = now_;
  return ended;
}

void EngineTest::has_warm(const std::string& name, std::vector<std::string> services) {
  happens(ServicesWarm{pilot(name), std::move(services)});
}

void EngineTest::ends(const std::string& names, Failure failure, Duration run) {
  for (const TaskId id : tasks(names)) {
    EndAtPilot ended = result(to_string(id), failure);
    ended.outcome.started = now_ - run;
    happens(ended);
  }
}

void EngineTest::stages(const std::string& name) {
  EndAtPilot staged = result(name);
  staged.outputs_staged = true;
  happens(staged);
}

void EngineTest::gives_back(const std::string& names) {
  AttemptsReturned returned;
  for (const TaskId id : tasks(names)) {
    returned.pilot = holders_.at(id);
    returned.attempts.push_back(attempts_.at(id));
  }
  happens(returned);
}

void EngineTest::leaves(const std::string& name, const std::string& reason) {
  happens(PilotLeaving{pilot(name), reason});
}

void EngineTest::reads_outbox(const std::string& name, std::vector<AttemptEnd> results) {
  happens(OutboxRead{allocation(name), std::move(results)});
}

void EngineTest::restarts() {
  saved_.count_start();
  engine_ = std::make_unique<Engine>(sites_, saved_.snapshot(), saved_.live_arrays(), 1, now_);
  engine_->check_invariants();
  happens(TimePassed{});
}

void EngineTest::restarts_with(std::vector<Site> sites) {
  sites_ = std::move(sites);
  restarts();
}

void EngineTest::batch(const std::string& name, BatchState state, const std::string& reason) {
  const AllocationId id = allocation(name);
  batch_[id] = {.name = id.name, .number = "100" + name, .state = state, .reason = reason};
  batch_sites_[id] = saved_.allocations().at(id).site;
}

void EngineTest::batch_ended(const std::string& name, EndCause cause) {
  batch(name, BatchState::Ended);
  batch_.at(allocation(name)).cause = cause;
}

void EngineTest::batch_forgot(const std::string& name) {
  batch_.erase(allocation(name));
}

// --- expect ------------------------------------------------------------------------------------

void EngineTest::expect(const std::vector<std::string>& patterns) {
  bool same = patterns.size() == asked_.size();
  for (std::size_t i = 0; same && i < patterns.size(); ++i) {
    same = fnmatch(patterns[i].c_str(), asked_[i].c_str(), FNM_NOESCAPE) == 0;
  }
  EXPECT_TRUE(same) << "expected:\n  " << fmt::format("{}", fmt::join(patterns, "\n  "))
                    << "\nasked for:\n  " << fmt::format("{}", fmt::join(asked_, "\n  "));
  asked_.clear();
}

void EngineTest::expect_ended(const std::string& name, Failure failure,
                              const std::string& message) {
  const auto outcome = saved_.outcome(task(name));
  ASSERT_TRUE(outcome) << name << " has not ended";
  EXPECT_EQ(to_string(outcome->failure), to_string(failure)) << outcome->message;
  EXPECT_EQ(fnmatch(message.c_str(), outcome->message.c_str(), 0), 0) << outcome->message;
}

void EngineTest::expect_state(const std::string& name, TaskState state) {
  const auto there = engine_->state_of(task(name));
  ASSERT_TRUE(there) << name << " has ended";
  EXPECT_EQ(to_string(*there), to_string(state));
}

void EngineTest::expect_explained(const std::string& name, const std::string& pattern) {
  const auto why = engine_->explain(task(name), now_);
  ASSERT_TRUE(why);
  const std::string text = fmt::format("{}; {}", why->text, fmt::join(why->details, "; "));
  EXPECT_EQ(fnmatch(pattern.c_str(), text.c_str(), 0), 0) << text;
}

std::vector<std::string> EngineTest::show(const Action& action) {
  const auto at = [&](const PilotId& id) { return name_of(id); };
  const auto one = [](std::string line) { return std::vector<std::string>{std::move(line)}; };
  using Lines = std::vector<std::string>;
  return match(
      action,
      [&](const AnswerSubmit& a) {
        std::string ids;
        for (const ArrayId id : a.ids) ids += fmt::format(" {}", id.value);
        return one("accept" + ids);
      },
      [&](const AnswerRefused& a) {
        return one(fmt::format("{}: {}", a.conflict ? "conflict" : "refuse", a.text));
      },
      [&](const AnswerCount& a) { return one(fmt::format("count {}", a.tasks)); },
      [&](const TellEnded& a) { return one(fmt::format("tell {}", a.array.value)); },
      [&](const SendLeases& a) {
        std::map<std::pair<ArrayId, std::uint32_t>, IndexSet> by_array;
        std::vector<std::pair<ArrayId, std::uint32_t>> order;
        for (const SendLeases::Lease& lease : a.leases) {
          const TaskId id = lease.attempt.task;
          if (lease.holds_room)
            return one(fmt::format("hold {} at {}", to_string(id), at(a.pilot)));
          attempts_[id] = lease.attempt;
          holders_[id] = a.pilot;
          const std::pair key{id.array, lease.attempt.number};
          if (!by_array.contains(key)) order.push_back(key);
          by_array[key].add(id.index);
        }
        Lines lines;
        for (const auto& key : order) {
          const std::string indices = to_string(by_array.at(key));
          lines.push_back(fmt::format(
              "lease {}{}{} to {}", key.first.value, indices == "0" ? "" : "." + indices,
              key.second == 1 ? "" : fmt::format(" again ({})", key.second), at(a.pilot)));
        }
        return lines;
      },
      [&](const RecallLeases& a) {
        return one(fmt::format("recall {} from {}", a.count, at(a.pilot)));
      },
      [&](const KillAttempt& a) {
        return one(fmt::format("kill {} at {}{}", to_string(a.attempt.task), at(a.pilot),
                               a.silent ? " silently" : ""));
      },
      [&](const AcknowledgeResults& a) {
        Lines lines;
        for (const AttemptId& attempt : a.attempts)
          lines.push_back(
              fmt::format("acknowledge {} to {}", to_string(attempt.task), at(a.pilot)));
        return lines;
      },
      [&](const PermitPublish& a) {
        return one(
            fmt::format("permit {} to publish at {}", to_string(a.attempt.task), at(a.pilot)));
      },
      [&](const WelcomePilot& a) { return one("welcome " + at(a.pilot)); },
      [&](const EndPilot& a) { return one("end " + at(a.pilot)); },
      [&](const FencePilot& a) {
        return one(fmt::format("fence {} ({})", at(a.pilot), a.incarnation));
      },
      [&](const StageIn& a) {
        const std::string indices = to_string(a.indices);
        return one(fmt::format("bring files of {}{}{} to {}", a.array.value,
                               indices == "0" ? "" : "." + indices, a.of_each ? ", each" : "",
                               a.site));
      },
      [&](const OpenAllocation& a) {
        if (std::find(letters_.begin(), letters_.end(), a.allocation) == letters_.end())
          letters_.push_back(a.allocation);
        return one(fmt::format("open {}: {} of {}", letter_of(a.allocation), a.shape, a.site));
      },
      [&](const CancelAllocation& a) {
        const auto job = batch_.find(a.allocation);
        if (cancels_work_ && job != batch_.end()) {
          job->second.state = BatchState::Ended;
          job->second.cause = EndCause::Cancelled;
        }
        return one("cancel " + letter_of(a.allocation));
      },
      [&](const ReadOutbox& a) { return one("read the outbox of " + letter_of(a.allocation)); },
      [&](const ForgetAllocation& a) { return one("forget " + letter_of(a.allocation)); },
      [&](const EngineIdle&) { return one("idle"); },
      // Saves are looked at by Saved, polls are answered by the fake.
      [&](const SaveArrays&) { return Lines{}; }, [&](const SaveHold&) { return Lines{}; },
      [&](const SaveTerms&) { return Lines{}; }, [&](const SaveCancelled&) { return Lines{}; },
      [&](const SavePermitted&) { return Lines{}; }, [&](const SaveLeases&) { return Lines{}; },
      [&](const DropLeases&) { return Lines{}; }, [&](const SaveFailedAttempt&) { return Lines{}; },
      [&](const SaveResult&) { return Lines{}; }, [&](const SaveResults&) { return Lines{}; },
      [&](const SaveArrayEnded&) { return Lines{}; }, [&](const SaveRevived&) { return Lines{}; },
      [&](const SaveAllocation&) { return Lines{}; }, [&](const SaveKeep&) { return Lines{}; },
      [&](const SaveReader&) { return Lines{}; },
      // Behind each welcome.
      [&](const ConfirmPilot&) { return Lines{}; },
      [&](const StayPilot& a) {
        // Several of one batch job stay whenever one of them has work: one test looks at that.
        if (engine_->pilots().find({a.pilot.allocation, a.pilot.rank == 0 ? 1U : 0U}))
          return Lines{};
        return one(fmt::format("{} stays {}", at(a.pilot), show_duration(a.time)));
      },
      [&](const LookAtQueue&) { return Lines{}; }, [&](const PollSite&) { return Lines{}; });
}

// --- names -------------------------------------------------------------------------------------

TaskId EngineTest::task(const std::string& name) const {
  const auto dot = name.find('.');
  TaskId id{ArrayId{std::stoull(name.substr(0, dot))}, 0};
  if (dot != std::string::npos)
    id.index = static_cast<std::uint32_t>(std::stoul(name.substr(dot + 1)));
  return id;
}

std::vector<TaskId> EngineTest::tasks(const std::string& names) const {
  const auto dot = names.find('.');
  if (dot == std::string::npos) return {task(names)};
  std::vector<TaskId> all;
  IndexSet indices = *parse_index_set(names.substr(dot + 1));
  while (!indices.empty())
    all.push_back({ArrayId{std::stoull(names.substr(0, dot))}, indices.pop_first()});
  return all;
}

HeldAttempt EngineTest::held(const std::string& name, HeldAttempt::State state) const {
  return {attempt(name), state};
}

AllocationId EngineTest::allocation(const std::string& letter) const {
  return letters_.at(static_cast<std::size_t>(letter.at(0) - 'A'));
}

PilotId EngineTest::pilot(const std::string& name) const {
  return {allocation(name.substr(0, 1)), static_cast<std::uint32_t>(std::stoul(name.substr(1)))};
}

std::string EngineTest::letter_of(const AllocationId& id) const {
  const auto at = std::find(letters_.begin(), letters_.end(), id);
  return at == letters_.end() ? id.name
                              : std::string(1, static_cast<char>('A' + (at - letters_.begin())));
}

}  // namespace hpcbatch
