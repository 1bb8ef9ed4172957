// What there is to see of tasks: one in full, lists, why one waits.
#pragma once

#include "api/routes.hpp"
#include "api/submissions.hpp"
#include "runtime/runtime.hpp"

#include <boost/json/object.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace hpcbatch {

/// Everything a task came to, from the store; what the engine still holds is laid over it.
struct TaskFacts {
  std::optional<store::ArrayRow> array;
  std::optional<store::ResultRow> result;
  std::vector<store::AttemptRow> attempts;
  std::optional<Allocation> allocation;  ///< of the result's pilot
  std::optional<Item> item;              ///< its own, of an array with some
  std::string metrics;                   ///< JSON that it wrote of itself, not looked at
  Needs needs;                           ///< that it had when it ended, or has
};

class TaskViews {
 public:
  TaskViews(Runtime& runtime, Submissions& submissions)
      : runtime_(runtime), submissions_(submissions) {}
  void add_to(Routes& routes);
  /// `answer` on the loop.
  void read_facts(TaskId task, std::function<void(TaskFacts)> answer);
  boost::json::object task_json(TaskId task, const TaskFacts& facts) const;

 private:
  void list(const HttpRequest& request, const ReplyPtr& reply);
  void show(TaskId task, const ReplyPtr& reply);
  void explain(TaskId task, const ReplyPtr& reply);
  void explain_one(TaskId task, const TaskFacts& facts, const ReplyPtr& reply);
  void put_lease(boost::json::object& object, TaskId task) const;

  Runtime& runtime_;
  Submissions& submissions_;
};

}  // namespace hpcbatch
