// Output of tasks: of ended ones from the pilot's log, of running ones over its link, or both in
// one stream.
#pragma once

#include "api/routes.hpp"
#include "api/task_views.hpp"
#include "runtime/runtime.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hpcbatch {

class Logs {
 public:
  Logs(Runtime& runtime, TaskViews& tasks) : runtime_(runtime), tasks_(tasks) {}
  void add_to(Routes& routes);
  /// Bytes of a stream of an ended task, from `offset`; `answer` on the loop.
  void read(const store::ResultRow& result, const std::string& site, std::uint32_t stream,
            std::uint64_t offset, std::size_t limit,
            std::function<void(Result<std::string>)> answer);

 private:
  /// Which bytes of a task's output; `tail`, where it is not 0, counts from the end.
  struct Range {
    std::uint32_t stream{1};
    std::uint64_t offset{0}, tail{0};
    std::size_t limit{0};
    std::string file;  ///< to which that stream goes; empty: it is kept
  };
  struct Reader;
  void answer_piece(TaskId task, const HttpRequest& request, const ReplyPtr& reply);
  void of_attempt(TaskId task, std::uint64_t number, const Range& range, const ReplyPtr& reply);
  void of_ended(const store::ResultRow& ended, const std::string& site, const Range& range,
                const ReplyPtr& reply);
  void of_running(TaskId task, const Range& range, const ReplyPtr& reply);
  void follow(TaskId task, const ReplyPtr& reply);
  void read_along(const std::shared_ptr<Reader>& reader);
  void finish_follow(TaskId task, std::array<std::uint64_t, 3> seen, AttemptId attempt,
                     const ReplyPtr& reply);

  Runtime& runtime_;
  TaskViews& tasks_;
};

}  // namespace hpcbatch
