// A small world around the engine in which things go wrong at random: clients, two batch systems
// that lose answers, pilots whose links break and that die, and an engine that is killed in the
// middle of what it does and starts from what was saved. The same seed is the same history.
#pragma once

#include "engine/engine.hpp"
#include "engine/history_of.hpp"
#include "history/history.hpp"
#include "saved.hpp"

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch {

class World {
 public:
  explicit World(std::uint32_t seed);

  /// So many random steps, then peace until all has ended.
  void run(int steps);
  /// What went wrong first; empty: nothing.
  const std::string& wrong() const { return wrong_; }
  /// Stands for all that the engine asked for.
  std::uint64_t fingerprint() const { return fingerprint_; }
  const Saved& saved() const { return saved_; }

 private:
  struct Here {
    AttemptId attempt;
    Resources granted;
    enum class State : std::uint8_t { Waiting, Running, Staged, Ended } state{State::Waiting};
    Outcome outcome;
  };
  struct Process {
    PilotId id;
    std::uint64_t incarnation{0};
    Resources capacity;
    Time end{};
    bool linked{false};
    bool leaving{false};
    std::deque<Action> inbox;  ///< on its way from the engine
    std::vector<Here> held;
  };
  struct Job {
    AllocationId id;
    std::string site;
    Shape shape;
    std::string number;
    BatchState state{BatchState::Queued};
    EndCause cause{EndCause::None};
  };

  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  void fail(const std::string& text);

  // world.cpp: clients, the engine, its death
  void step();
  void feed(const Event& event);
  void perform(const Action& action);
  void note(const Action& action);
  void record(const std::string& by, std::string what,
              std::vector<std::pair<std::string, std::string>> facts);
  void record(const std::vector<Noted>& noted);
  void check_promises();
  void kill_engine();
  void start_engine(std::vector<Site> sites);
  NewArray any_array();
  void submit();
  void ask_something();
  void retry_something();
  void pass(Duration time);
  void make_peace();

  // world_batch.cpp
  void open(const OpenAllocation& asked);
  void cancel(const CancelAllocation& asked);
  void poll(const std::string& site);
  void answer();
  void run_batch_systems();
  void start_processes(const Job& job);
  void end_job(Job& job, EndCause cause, bool orderly);
  void record_job(const std::string& what, const Job& job);

  // world_pilots.cpp
  void run_pilot();
  void send(const PilotId& id, const Action& action);
  void connect(Process& process);
  void read_inbox(Process& process);
  void work(Process& process);
  void say_ended(Process& process, Here& here);
  void give_back(Process& process, std::uint32_t count);
  void break_link(Process& process);
  void leave(const Process& process);
  void put_into_outbox(const Process& process);
  void check_alone(const Process& process, TaskId task);
  Process* find(const PilotId& id, std::uint64_t incarnation);
  void record_gone(const Process& process);
  void record_attempt(const std::string& what, const Process& process, const Here& here);

  std::mt19937 random_;
  Time now_{from_microseconds(1'700'000'000'000'000)};
  std::vector<Site> sites_;
  std::vector<Site> configured_;  ///< of these; the others were taken out at the last start
  std::set<AllocationId>
      out_of_reach_;  ///< of sites that were: the engine may have given them up while they live
  std::unique_ptr<Engine> engine_;
  Saved saved_;
  std::string wrong_;
  std::uint64_t fingerprint_{0};
  history::History history_;  ///< of engine, pilots and batch systems, by the clock of this world
  bool peace_{false};

  std::vector<Job> jobs_;
  std::vector<Process> processes_;
  std::deque<Event> answers_;  ///< of batch systems and outboxes, on their way to the engine
  std::map<AllocationId, std::vector<AttemptEnded>> outboxes_;
  std::map<PilotId, std::uint64_t> welcomed_;  ///< whose link the engine takes for the pilot's
  std::uint64_t incarnations_{0};
};

}  // namespace hpcbatch
