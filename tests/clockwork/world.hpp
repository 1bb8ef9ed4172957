// A whole system under one seeded clock: the real engine with the real order of its commits, the
// real decisions of its pilots, and fakes of all that lies between and around them.
#pragma once

#include "batch_systems.hpp"
#include "clock.hpp"
#include "draw.hpp"
#include "engine_host.hpp"
#include "far_files.hpp"
#include "history/history.hpp"
#include "observer.hpp"
#include "scenario.hpp"
#include "tally.hpp"
#include "users.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::clockwork {

/// The workspace of all sites, as pilots and engine see it.
struct Workspace {
  std::map<std::string, std::string> pilot_files;            ///< by allocation: its site
  std::map<std::string, std::vector<std::string>> outboxes;  ///< by pilot: results
  Time unreadable_until{};
  Time unwritable_until{};
};

class World {
 public:
  explicit World(Scenario scenario);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// All that the scenario has, then peace until nothing is left.
  void run();
  /// What went wrong first; empty: nothing.
  const std::string& wrong() const { return wrong_; }
  const Tally& tally() const { return tally_; }
  const history::History& history() const { return history_; }
  /// Stands for all that happened: the same for the same scenario.
  std::uint64_t fingerprint() const { return fingerprint_; }

  // For its parts.
  void fail(const std::string& text);
  bool has_failed() const { return !wrong_.empty(); }
  void record(const std::string& by, std::string what,
              std::vector<std::pair<std::string, std::string>> facts = {});
  void count(std::string_view what) { tally_.count(what); }
  const Scenario& scenario() const { return scenario_; }
  Draw draw(std::initializer_list<std::uint64_t> purpose) const {
    return Draw(scenario_.seed).of(purpose);
  }
  Clock clock;
  Workspace workspace;

 private:
  void strike(const Incident& incident);
  void make_peace();
  bool is_over() const;
  void tell_who_stays();
  void check_leases();
  void check_nothing_left();
  void check_promises();

  Scenario scenario_;
  std::map<AttemptId, Time> missing_;  ///< leases that their pilots do not hold, and since when
  Tally tally_;
  history::History history_;
  std::string wrong_;
  std::uint64_t fingerprint_{0};

 public:
  Observer observer;
  EngineHost engine;
  BatchSystems batch;
  FarFiles files;
  Users users;
};

}  // namespace hpcbatch::clockwork
