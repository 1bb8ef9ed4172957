// The engine's API: requests in, answers out.  docs/api.md is its contract.
#pragma once

#include "api/answers/running_tasks.hpp"
#include "api/engine_routes.hpp"
#include "api/http/http_server.hpp"
#include "api/make/make_submission.hpp"
#include "api/read/read_request.hpp"
#include "api/routes.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "model/resources.hpp"
#include "runtime/runtime.hpp"
#include "tools/tool_registry.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hpcbatch {

// What there is to see of submissions as a whole.

class Submissions {
 public:
  explicit Submissions(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);
  void explain(const store::ArrayRow& row, const ReplyPtr& reply);

 private:
  struct Standing;
  Standing live_ones(ArrayId id) const;
  Standing standing(const store::ArrayOverview& whole) const;
  static boost::json::object counts_json(const Standing& now);
  boost::json::object array_json(const store::ArrayOverview& whole) const;
  void list(const HttpRequest& request, const ReplyPtr& reply);
  void show(ArrayId id, const ReplyPtr& reply);

  Runtime& runtime_;
};

// What there is to see of tasks: one in full, lists, why one waits.

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
  void add_files_on_their_way(boost::json::array& details, TaskId task) const;
  void put_lease(boost::json::object& object, TaskId task) const;

  Runtime& runtime_;
  Submissions& submissions_;
};

// What runs and what ran, for pictures of it: `GET /v1/runs`.

/// Answers each look with what has changed since the one before, so that it costs by what happens and
/// not by what there is.
class Runs {
 public:
  explicit Runs(Runtime& runtime);
  void add_to(Routes& routes);

 private:
  void list(const HttpRequest& request, const ReplyPtr& reply);

  Runtime& runtime_;
  RunningTasks running_;
};

// Output of tasks: of ended ones from the pilot's log, of running ones over its link, or both in
// one stream.

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

// What changes tasks that there are: cancel, hold, release, retry, and their input.

class Changes {
 public:
  explicit Changes(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);

 private:
  void change(const std::string& verb, const HttpRequest& request, const ReplyPtr& reply);
  void take_input(TaskId task, const HttpRequest& request, const ReplyPtr& reply);

  Runtime& runtime_;
};

// What there is besides tasks and sites: allocations, pilots, tools.

/// Of `/v1/THINGS` all, of `/v1/THINGS/NAME` the one of that name.
void answer_listing(const HttpRequest& request, const ReplyPtr& reply, const char* plural,
                    boost::json::array things);
void put_amounts(boost::json::object& object, const Resources& amounts);

class Listings {
 public:
  Listings(Runtime& runtime, ToolRegistry& tools, ToolCalls& calls)
      : runtime_(runtime), tools_(tools), calls_(calls) {}
  void add_to(Routes& routes);

 private:
  void allocations(const HttpRequest& request, const ReplyPtr& reply);
  void pilots(const HttpRequest& request, const ReplyPtr& reply);
  void tools(const HttpRequest& request, const ReplyPtr& reply);
  void check_tool(const std::string& name, const ReplyPtr& reply);

  Runtime& runtime_;
  ToolRegistry& tools_;
  ToolCalls& calls_;
};

// What runs used: `GET /v1/report`.

class Reports {
 public:
  explicit Reports(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);

 private:
  void report(const HttpRequest& request, const ReplyPtr& reply);

  Runtime& runtime_;
};

// A submit on its way to the engine: tools are looked up, inputs looked at, commands rendered.

class SubmitRoutes {
 public:
  /// `umask`: for tasks whose client names none; `notify`: for what people submit and say nobody.
  SubmitRoutes(Runtime& runtime, ToolRegistry& tools, ToolCalls& calls, std::uint32_t umask,
               std::vector<std::string> notify)
      : runtime_(runtime),
        tools_(tools),
        calls_(calls),
        umask_(umask),
        notify_(std::move(notify)) {}
  void add_to(Routes& routes);

 private:
  using Prepared = std::function<void(Submission submission)>;
  using Answer = std::function<void(const std::variant<std::vector<ArrayId>, SubmitRefusal>& said,
                                    const std::vector<std::string>& advice)>;
  using Refuse = std::function<void(SubmitRefusal refusal)>;
  void post(std::string body, const ReplyPtr& reply);
  void post_several(const HttpRequest& request, const ReplyPtr& reply);
  void try_out(std::string body, const ReplyPtr& reply);
  void ids_of_key(const HttpRequest& request, const ReplyPtr& reply);
  /// Turns tasks as asked for into what the engine takes; `answer` on the loop.
  void submit(SubmitRequest request, std::uint64_t content, Answer answer);
  /// Looks up what runs before used, where that is wanted, and makes it; one of both is called, on
  /// the loop.
  void prepare(SubmitRequest request, std::uint64_t content, Prepared prepared, Refuse refuse);
  /// Looks at files, finds tools and renders.
  void make(SubmitRequest request, std::uint64_t content, Prepared prepared, Refuse refuse);
  struct Made;
  /// Finds what is rendered elsewhere, and goes on when that is there.
  void render(const std::shared_ptr<Made>& made);
  void put_together(Made& made, const Renderings& rendered);

  Runtime& runtime_;
  ToolRegistry& tools_;
  ToolCalls& calls_;
  std::uint32_t umask_;
  std::vector<std::string> notify_;
  Lane files_;  ///< looks at input files, which may lie on file systems that hang
};

// Requests that wait for tasks to end: `wait`, and the feed of changes.

class Waits {
 public:
  explicit Waits(Runtime& runtime);
  void add_to(Routes& routes);

 private:
  struct Waiter {
    std::function<bool(bool timed_out)> check;  ///< true: answered
    asio::steady_timer timer;
    bool answered{false};
  };
  void wait(const HttpRequest& request, const ReplyPtr& reply);
  void events(const HttpRequest& request, const ReplyPtr& reply);
  /// Given up where the client goes.
  void wait_for_ends(double seconds, const ReplyPtr& reply, std::function<bool(bool)> check);

  Runtime& runtime_;
  std::list<std::shared_ptr<Waiter>> waiters_;
};

// `/v1/readers`: programs that wait for what they have submitted say that they are there.

/// Called when a reader is there once more than before, or once less.
using HearReader = std::function<void(const std::string& reader, bool is_there)>;

/// A reader is there while such a request of it is open.  The request has no answer and no time
/// limit: a program that is busy or stopped for hours could not ask again.  The kernel closes the
/// connection of a program that was killed.  `heard` is called on the loop's thread, and never once
/// `routes` is gone.
void add_readers(Routes& routes, HearReader heard);

// Sites: what they are like, checked, cleaned.

class SiteRoutes {
 public:
  explicit SiteRoutes(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);

 private:
  void show(const HttpRequest& request, const ReplyPtr& reply);
  void check(const std::string& name, const ReplyPtr& reply);
  void clean(const HttpRequest& request, const ReplyPtr& reply);
  void resume(const std::string& name, const ReplyPtr& reply);
  void list_past(const HttpRequest& request, const ReplyPtr& reply);

  Runtime& runtime_;
};

// `/v1/keeps`: shapes of which pilots are kept, whatever there is for them to do.

/// `GET` lists them; `POST` keeps pilots of a shape until a time, or no longer.
void add_keeps(Routes& routes, Runtime& runtime);

// `GET /v1/waits`: how long allocations wait in the queues of their batch systems.

/// Each shape of each site, with how long an allocation that is asked for now would wait and how
/// good such words were, and the allocations that wait.
void add_queue_waits(Routes& routes, Runtime& runtime);

/// `queue`: it says so as it is; `model`: what was learned of the site's past; `waits`: those before
/// it do.
std::string_view word_for(StartBound::By by);

/// On the loop's thread.
class Api {
 public:
  Api(Runtime& runtime, ToolRegistry& tools, EngineFacts facts, StayOrGo stay_or_go);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  void handle(HttpRequest request, ReplyPtr reply);
  /// For those whose handlers are no part of this.
  Routes& routes() { return routes_; }
  const EngineFacts& facts() const { return facts_; }
  TaskViews& tasks() { return tasks_; }
  Logs& logs() { return logs_; }
  ToolCalls& tool_calls() { return tool_calls_; }

 private:
  Runtime& runtime_;
  EngineFacts facts_;
  Submissions submissions_;
  TaskViews tasks_;
  Runs runs_;
  Logs logs_;
  ToolCalls tool_calls_;
  SubmitRoutes submits_;
  Waits waits_;
  Changes changes_;
  SiteRoutes sites_;
  Listings listings_;
  Reports reports_;
  EngineRoutes engine_;
  Routes routes_;
  std::uint64_t requests_{0};
};

}  // namespace hpcbatch
