#include "world.hpp"

#include "planted/planted.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

namespace {

// However bad it was, in peace everything has come to its end by then: the longest pause of a shape
// is a day after refusals for good, an hour after what this world does to one.
constexpr Duration kLongestPeace = 6h;
// How often is looked whether engine and pilots agree, and what a message takes at the most.
constexpr Duration kLookEvery = 10s;
constexpr Duration kHeard = 30s;
// No world of a scenario has so much to do.
constexpr std::uint64_t kMostSteps = 3'000'000;

std::uint64_t hash_of(std::uint64_t before, const std::string& text) {
  return before * 31 + std::hash<std::string>{}(text);
}

}  // namespace

World::World(Scenario scenario)
    : scenario_(std::move(scenario)),
      observer(*this),
      engine(*this),
      batch(*this),
      files(*this),
      users(*this) {}

void World::fail(const std::string& text) {
  if (wrong_.empty())
    wrong_ = fmt::format("{} (at {:.6f} s)", text,
                         static_cast<double>((clock.now() - Clock::kBegin).count()) / 1e6);
}

void World::record(const std::string& by, std::string what,
                   std::vector<std::pair<std::string, std::string>> facts) {
  fingerprint_ = hash_of(fingerprint_, by + what);
  for (const auto& [name, value] : facts) fingerprint_ = hash_of(fingerprint_, value);
  history_.push_back({to_microseconds(clock.now()), by, std::move(what), std::move(facts)});
}

void World::run() {
  walks_invariants = true;
  engine.start();
  for (const Incident& incident : scenario_.incidents)
    clock.at(Clock::kBegin + incident.at, [this, &incident] { strike(incident); });
  std::uint64_t steps = 0;
  const auto go_on = [&](Time until) {
    while (!has_failed() && !clock.empty() && clock.next() <= until) {
      clock.step();
      if (++steps > kMostSteps) fail("it moves in a circle");
    }
  };
  for (Time look = clock.now(); look < Clock::kBegin + scenario_.length && !has_failed();) {
    look = std::min<Time>(look + kLookEvery, Clock::kBegin + scenario_.length);
    go_on(look);
    check_leases();
  }
  make_peace();
  const Time latest = clock.now() + kLongestPeace;
  for (Time look = clock.now(); !has_failed() && !is_over() && clock.now() < latest;) {
    look += kLookEvery;
    clock.at(look, [] {});
    go_on(look);
    // What an engine accepted while it was dying nobody knows to be held.
    if (!is_over()) users.release_all();
    if (!is_over()) users.keep_nothing();
    tell_who_stays();
    if (!has_failed()) check_leases();
  }
  if (!has_failed()) check_nothing_left();
  check_promises();
}

void World::strike(const Incident& incident) {
  using enum IncidentKind;
  const auto with_link = [&](auto does) {
    const auto links = engine.links();
    if (links.empty()) return;
    count("fault " + std::string(name_of(incident.kind)));
    does(*links[incident.which % links.size()]);
  };
  switch (incident.kind) {
    case submit:
    case cancel:
    case hold:
    case release:
    case retry:
    case keep:
      return users.strike(incident);
    case stop_engine:
      return engine.stop(incident.which % 2 == 0 ? StopAsked::Mode::Leave : StopAsked::Mode::Drain,
                         incident.length);
    case kill_engine:
    case lose_power:
      return engine.kill_after(incident.which % 12, incident.length, incident.kind == lose_power);
    case remove_site:
      if (!engine.is_up()) return;
      count("fault remove_site");
      engine.leave_out(scenario_.sites[incident.which % scenario_.sites.size()].name);
      return engine.kill_after(incident.which % 12, incident.length, false);
    case fail_commits:
      return engine.fail_commits(incident.length);
    case slow_commits:
      return engine.slow_commits(incident.length);
    case cut_link:
      return with_link([](Link& link) { link.cut(); });
    case lose_link:
      return with_link([](Link& link) { link.go_silent(); });
    case stall_link:
      return with_link([&](Link& link) { link.stall(incident.length); });
    case lose_frame:
      return with_link([](Link& link) { link.spoil(Link::Spoil::Lose); });
    case double_frame:
      return with_link([](Link& link) { link.spoil(Link::Spoil::Double); });
    case swap_frames:
      return with_link([](Link& link) { link.spoil(Link::Spoil::Swap); });
    case fail_outbox:
      workspace.unwritable_until = clock.now() + incident.length;
      return;
    case killer_task:
      return users.plant_killer();
    case lose_workspace:
      count("fault lose_workspace");
      workspace.unreadable_until = workspace.unwritable_until = clock.now() + incident.length;
      return;
    case hide_outbox:
      workspace.unreadable_until = clock.now() + incident.length;
      return;
    default:
      return batch.strike(incident);
  }
}

/// Nothing goes wrong any more: now all must end, without anybody's help.
void World::make_peace() {
  workspace.unreadable_until = workspace.unwritable_until = {};
  engine.fail_commits(0s);
  engine.slow_commits(0s);
  batch.make_peace();
  files.make_peace();
  const bool stays_as_it_is =
      engine.is_up() && engine.knows_all_sites() && !engine.engine()->is_draining();
  engine.leave_out("");
  if (engine.is_up() && !stays_as_it_is) engine.kill_after(0, 1s, false);
}

/// A pilot without an end that never counts as idle stays until the engine is stopped.
void World::tell_who_stays() {
  if (has_failed() || !engine.is_up() || !batch.has_one_that_stays()) return;
  if (engine.saved().results() == engine.saved().submitted())
    engine.stop(StopAsked::Mode::Drain, 1s);
}

/// What was said over a link that stands has been heard soon after, on both sides.
void World::check_leases() {
  if (has_failed() || !engine.is_up()) return;
  std::map<AttemptId, Time> missing;
  const Engine& there = *engine.engine();
  for (const auto& [task, lease] : there.pilots().leases()) {
    // Whose outputs are being staged out nobody there holds, nor does one that was started anew know
    // it.
    if (lease.has_left) continue;
    const PilotState* pilot = there.pilots().find(lease.pilot);
    const auto sent = engine.sent_at(lease);
    if (!pilot->connected || !sent || clock.now() - std::max(*sent, pilot->registered_at) < kHeard)
      continue;
    if (batch.holds(lease.pilot, pilot->incarnation, lease.attempt)) continue;
    // What it says of it may be on its way.
    const auto before = missing_.find(lease.attempt);
    const Time since = before == missing_.end() ? clock.now() : before->second;
    missing.emplace(lease.attempt, since);
    if (clock.now() - since >= kHeard) {
      fail(fmt::format("{} is leased to {}, which knows nothing of it", to_string(task),
                       to_string(lease.pilot)));
    }
  }
  missing_ = std::move(missing);
}

bool World::is_over() const {
  return engine.is_up() && engine.engine()->is_idle() && batch.is_empty() &&
         engine.saved().results() == engine.saved().submitted() && engine.commits_are_done();
}

void World::check_nothing_left() {
  if (!engine.is_up()) return fail("the engine did not come back");
  const Engine& there = *engine.engine();
  if (!is_over()) {
    std::string stuck;
    for (const auto& [id, array] : there.tasks().arrays()) {
      const IndexSet open = array.tasks.open();
      if (open.empty()) continue;
      const TaskId first{id, open.ranges().back().first};
      const auto why = there.explain(first, clock.now());
      stuck +=
          fmt::format("; {}: {} ({})", to_string(first), why->text, fmt::join(why->details, ", "));
    }
    return fail(fmt::format("{} of {} tasks have ended, {} leases, {} allocations; batch jobs:{}{}",
                            engine.saved().results(), engine.saved().submitted(),
                            there.pilots().leases().size(), there.sites().allocations().size(),
                            batch.what_is_left(), stuck));
  }
  if (!there.pilots().all().empty()) return fail("a pilot is left in the engine");
  // Let what was begun come to its end: no timer may call the engine any more.
  const Time latest = clock.now() + 1h;
  while (!has_failed() && !clock.empty() && clock.next() <= latest) clock.step();
  if (engine.engine()->next_wake()) return fail("a timer is left in the engine");
  if (!workspace.pilot_files.empty())
    return fail("the pilot file of " + workspace.pilot_files.begin()->first + " is left");
  if (!workspace.outboxes.empty())
    return fail("the outbox of " + workspace.outboxes.begin()->first + " is left");
}

void World::check_promises() {
  for (const history::Breach& breach : history::check(history_, {.ended = !has_failed()}))
    fail(history::to_text(breach, history_));
}

}  // namespace hpcbatch::clockwork
