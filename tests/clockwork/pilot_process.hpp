// A pilot's process: the real decisions, with its link, its tasks and its node as fakes.
#pragma once

#include "draw.hpp"
#include "link.hpp"
#include "model/ids.hpp"
#include "model/resources.hpp"
#include "pilot/policy/decide.hpp"
#include "wire/wire.pb.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::clockwork {

class World;

class PilotProcess : public std::enable_shared_from_this<PilotProcess> {
 public:
  struct Node {
    std::string name;
    Resources capacity;
    bool bad{false};        ///< fails every task
    bool unfit{false};      ///< and the pilot finds that out
    Duration wall_clock{};  ///< runs ahead by
  };
  struct Times {
    Duration walltime{};
    Duration idle{};
  };
  PilotProcess(World& world, PilotId id, std::uint64_t incarnation, std::string number, Node node,
               Times times);
  void begin();

  const PilotId& id() const { return id_; }
  std::string name() const;  ///< "NAME.RANK/INCARNATION"
  std::uint64_t incarnation() const { return incarnation_; }
  bool is_gone() const { return gone_; }
  bool was_killed() const { return killed_; }
  bool holds(const AttemptId& attempt) const;
  /// Stands still, did so a moment ago, or has a link that delivers nothing.
  bool is_in_trouble() const;

  void terminate();  ///< SIGTERM
  void kill();       ///< SIGKILL, and its tasks with it
  void freeze(Duration length, bool tasks_too);
  void thaw();
  void lose_link();
  void world_ends();  ///< lets go of what holds this process

 private:
  struct Task {
    std::uint64_t run{0};  ///< which of this process's: a later one may have the same id
    Time ends{};
    pilot::AttemptId id;
    std::optional<Failure> failure;  ///< that a stop asked for
    std::string message;
    wire::Result result;
    bool staged{false};
    bool is_claim{false};
  };

  pilot::Time steady() const;
  /// What comes from outside; a process that stands still hears it later.
  void hears(std::function<void()> what);
  void turn();
  void arm(std::optional<pilot::Time> at);
  void perform(pilot::Action& action);
  void launch(const pilot::Launch& action);
  void launch_claim(const pilot::Launch& action);
  void stop(const pilot::Stop& action);
  void end_task_at(Task& task, Time at);
  void task_ended(const pilot::AttemptId& id, std::uint64_t run);
  void publish(const pilot::AttemptId& id);
  void fail(const pilot::Fail& action);
  void deliver(const pilot::AttemptId& id, wire::Result result);
  void write_outbox();
  void read_outbox();
  void exit();

  // its link
  void connect();
  void link_up();
  void link_down();
  void beat(const std::shared_ptr<Link>& link);
  void heard(const std::string& bytes);
  void added(bool urgent);
  void send_now();
  void say_results();
  void gpu_breaks();
  void put_capacity(google::protobuf::RepeatedPtrField<wire::Amount>& into) const;

  void record(std::string what, std::vector<std::pair<std::string, std::string>> facts = {});
  void record_attempt(std::string what, const pilot::AttemptId& id, const std::string& failure = "",
                      bool staged = false);

  World& world_;
  PilotId id_;
  std::uint64_t incarnation_;
  std::string number_;
  Node node_;
  Times times_;
  Draw draw_;
  pilot::Time now_;
  std::optional<pilot::Time> usable_until_;
  std::optional<pilot::Decide> decide_;
  bool gone_{false};
  bool killed_{false};
  std::optional<Time> frozen_since_;
  Time thaws_at_{};
  Time thawed_at_{};
  bool tasks_frozen_{false};
  std::vector<std::function<void()>> while_frozen_;
  std::optional<Time> wakes_at_;
  bool turning_{false};

  std::shared_ptr<Link> link_;
  bool up_{false};
  unsigned tries_{0};
  std::optional<Time> missing_since_;  // the pilot file
  wire::ToEngine outgoing_;
  bool any_outgoing_{false};
  bool flushing_{false};
  Time last_sent_{};

  std::map<pilot::AttemptId, Task> tasks_;  ///< that run
  std::map<pilot::AttemptId, wire::Result> results_, staged_;
  std::vector<pilot::AttemptId> started_;
  std::set<pilot::AttemptId> claims_;  ///< of these it only holds room, for other pilots
  std::uint64_t runs_{0};
  std::string leaving_;
};

}  // namespace hpcbatch::clockwork
