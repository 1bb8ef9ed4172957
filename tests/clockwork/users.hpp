// What users submit and ask, what their tasks do, and what they were told.
#pragma once

#include "draw.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "scenario.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::clockwork {

class World;

/// What one attempt would do if nothing came between.
struct Behaviour {
  Duration takes{};
  Failure failure{Failure::Ok};
  bool has_outputs{false};
  bool kills_its_pilot{false};
};

class Users {
 public:
  explicit Users(World& world) : world_(world) {}

  void strike(const Incident& incident);
  /// The next array that is submitted has a task that kills its pilot.
  void plant_killer() { killer_next_ = true; }
  /// All holds are given up.
  void release_all();
  /// No pilots are kept any more.
  void keep_nothing();

  // The engine's answers.
  void accepted(RequestId request, const std::vector<ArrayId>& ids);
  void refused(RequestId request, const std::string& text);
  void counted(RequestId request);
  void told(ArrayId array);
  void engine_died();
  void engine_started();

  /// What the engine calls it now; a number that was never on disk may be given twice.
  void saved(const SaveArrays& save);
  Behaviour behaviour(TaskId task, std::uint32_t attempt) const;
  const NewArray* facts_of(ArrayId array) const;
  Resources needs_of(TaskId task) const;

 private:
  struct Array {
    NewArray facts;
    std::uint64_t content{0};
  };
  void draw_course(NewArray& array, Draw draw) const;
  void submit(const Incident& incident);
  void send(RequestId request, TasksSubmitted event);
  void ask(const Incident& incident);
  void keep(const Incident& incident);
  NewArray draw_array(Draw& draw) const;
  void choose_local(NewArray& array, Draw draw) const;
  RequestId new_request() { return RequestId{++requests_}; }

  World& world_;
  std::uint64_t requests_{0};
  std::map<std::uint64_t, TasksSubmitted> waiting_;     ///< for an answer to a submit
  std::vector<TasksSubmitted> to_repeat_;               ///< the engine died before it answered
  std::map<std::string, std::vector<ArrayId>> by_key_;  ///< answered
  std::vector<ArrayId> known_;                          ///< answered
  std::map<ArrayId, Array> arrays_;
  bool killer_next_{false};
  std::set<std::uint64_t> with_killer_;  ///< arrays, by content
};

}  // namespace hpcbatch::clockwork
