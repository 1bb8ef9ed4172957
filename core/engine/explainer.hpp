// Why a task waits, put together from the engine's tables.
#pragma once

#include "engine/engine.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace hpcbatch {

class Explainer {
 public:
  /// `state` is the task's; all must outlive this.
  Explainer(const Engine& engine, TaskId task, TaskState state, Time now)
      : engine_(engine), task_(task), now_(now), why_{state, "", {}} {}

  Explanation explain();

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    why_.details.push_back(fmt::format(form, std::forward<Arguments>(arguments)...));
  }
  void explain_past();
  void explain_guess(const Needs& needs);
  std::string text_of(const Lease& lease);
  std::optional<std::string> why_not_ready(const ArrayState& array);
  void explain_files(const ArrayState& array);
  std::optional<std::string> service_of(const Needs& needs) const;
  void explain_places(const Needs& needs, const Needs& of_class);
  std::size_t explain_pilots(ClassId id);
  /// Whether a batch job is coming whose pilot could run it.
  bool awaits_pilot(const Needs& needs) const;
  /// Where room becomes free only when tasks end that may wait for tasks of their own.
  void explain_outer_tasks(ClassId id);
  /// Whether it, or another, is thought to kill pilots.
  void explain_suspects();
  void explain_nodes(const Needs& needs);
  void explain_sites(const Needs& needs);
  /// Where the batch system has suspended it.
  void explain_suspended(const AllocationId& id);
  void explain_allocation(const AllocationId& id, const Allocation& facts);
  void explain_allocations(const Needs& needs);

  const Engine& engine_;
  TaskId task_;
  Time now_;
  Explanation why_;
};

}  // namespace hpcbatch
