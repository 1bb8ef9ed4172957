// The routes of the engine's API: requests in, answers out.  docs/api.md is its contract.
#pragma once

#include "api/http_server.hpp"
#include "api/read/read_request.hpp"
#include "documents/configuration.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "plugin_host/plugin_host.hpp"
#include "runtime/runtime.hpp"
#include "tools/tool_shelf.hpp"

#include <boost/json/object.hpp>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// What `GET /v1/engine` says that does not change.
struct EngineFacts {
  std::string home;
  std::string socket;
  std::string configuration;  ///< empty: there is none
  Time started{};
  std::uint32_t umask{};  ///< as it was when the engine started: for tasks whose client names none
};

/// Everything a task came to, from the store; what the engine still holds is laid over it.
struct TaskFacts {
  std::optional<store::ArrayRow> array;
  std::optional<store::ResultRow> result;
  std::vector<store::AttemptRow> attempts;
  std::optional<Allocation> allocation;  ///< of the result's pilot
  std::optional<Item> item;              ///< its own, of an array with some
};

/// One drop box as clients are told of it.
struct DropboxState {
  DropboxSettings settings;
  bool is_configured{false};  ///< by the configuration, not by a client
  std::string why_not;        ///< it cannot be watched just now
};

using ReplyPtr = std::shared_ptr<HttpReply>;

class Api {
 public:
  Api(Runtime& runtime, ToolShelf& tools, EngineFacts facts);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  ~Api();

  void handle(HttpRequest request, ReplyPtr reply);
  const EngineFacts& facts() const { return facts_; }
  /// The engine does not end for lack of work any more; set by whoever runs it.
  std::function<void()> stay;
  /// Whether it ends itself after a while without work.
  std::function<bool()> ends_when_idle;
  /// Set by whoever owns the drop boxes.
  std::function<void(const DropboxSettings&, std::function<void(Result<void>)>)> add_dropbox;
  std::function<void(const std::string& directory, std::function<void(Result<void>)>)>
      remove_dropbox;
  std::function<std::vector<DropboxState>()> dropboxes;

  /// Turns tasks as asked for into what the engine takes; `answer` on the loop.
  void submit(SubmitRequest request, std::uint64_t content, SubmitAnswer answer);
  /// Bytes of a stream of an ended task, from `offset`; `answer` on the loop.
  void read_log(const store::ResultRow& result, const std::string& site, std::uint32_t stream,
                std::uint64_t offset, std::size_t limit,
                std::function<void(Result<std::string>)> answer);
  void read_facts(TaskId task, std::function<void(TaskFacts)> answer);

 private:
  struct Waiter {
    std::function<bool(bool timed_out)> check;  ///< true: answered
    boost::asio::steady_timer timer;
    bool answered{false};
  };
  using Request = const HttpRequest&;

  void tasks(HttpRequest request, const ReplyPtr& reply);
  void one_task(Request request, const ReplyPtr& reply);
  void post_tasks(std::string body, const ReplyPtr& reply);
  void try_tasks(std::string body, const ReplyPtr& reply);
  using Prepared = std::function<void(Submission submission)>;
  using Refuse = std::function<void(SubmitRefusal refusal)>;
  /// Looks at files, finds tools and renders; one of both is called, on the loop.
  void prepare(SubmitRequest request, std::uint64_t content, Prepared prepared, Refuse refuse);
  void post_submits(Request request, const ReplyPtr& reply);
  void list_tasks(Request request, const ReplyPtr& reply);
  void keys(Request request, const ReplyPtr& reply);
  void show_task(TaskId task, const ReplyPtr& reply);
  void explain_task(TaskId task, const ReplyPtr& reply);
  void change_tasks(const std::string& verb, Request request, const ReplyPtr& reply);
  void wait_tasks(Request request, const ReplyPtr& reply);
  void take_input(TaskId task, Request request, const ReplyPtr& reply);
  void log_of_task(TaskId task, Request request, const ReplyPtr& reply);
  /// Which bytes of a task's output; `tail`, where it is not 0, counts from the end.
  struct LogRange {
    std::uint32_t stream{1};
    std::uint64_t offset{0}, tail{0};
    std::size_t limit{0};
  };
  void log_of_attempt(TaskId task, std::uint64_t number, const LogRange& range,
                      const ReplyPtr& reply);
  void answer_log(const store::ResultRow& ended, const std::string& site, const LogRange& range,
                  const ReplyPtr& reply);
  void log_of_running(TaskId task, std::uint32_t stream, std::uint64_t offset, std::size_t limit,
                      const ReplyPtr& reply);
  struct Reader;
  void follow_task(TaskId task, const ReplyPtr& reply);
  void read_along(const std::shared_ptr<Reader>& reader);
  void finish_follow(TaskId task, std::array<std::uint64_t, 3> seen, AttemptId attempt,
                     const ReplyPtr& reply);
  void arrays(Request request, const ReplyPtr& reply);
  void list_arrays(Request request, const ReplyPtr& reply);
  void show_array(ArrayId id, const ReplyPtr& reply);
  void explain_array(const store::ArrayRow& row, const ReplyPtr& reply);
  struct Now;
  Now now_of(ArrayId id) const;
  boost::json::object array_json(const store::ArrayOverview& whole) const;
  void events(Request request, const ReplyPtr& reply);
  void sites(Request request, const ReplyPtr& reply);
  void clean(Request request, const ReplyPtr& reply);
  void allocations(Request request, const ReplyPtr& reply);
  void pilots(Request request, const ReplyPtr& reply);
  void tools(Request request, const ReplyPtr& reply);
  void engine(Request request, const ReplyPtr& reply);
  void dropbox(Request request, const ReplyPtr& reply);

  /// Given up where the client goes.
  void wait_for_ends(double seconds, const ReplyPtr& reply, std::function<bool(bool)> check);
  std::string site_of(const std::string& pilot) const;
  boost::json::object task_json(TaskId task, const TaskFacts& facts) const;
  boost::json::object engine_json() const;

  Runtime& runtime_;
  ToolShelf& tools_;
  EngineFacts facts_;
  std::list<std::shared_ptr<Waiter>> waiters_;
  Lane files_;  ///< looks at input files, which may lie on file systems that hang
};

}  // namespace hpcbatch
