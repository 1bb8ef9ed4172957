// What clients ask the engine to do, and its answers once they are durable.
#pragma once

#include "engine/engine.hpp"
#include "loop/writer.hpp"
#include "model/action.hpp"
#include "model/event.hpp"

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hpcbatch {

/// Work as a client hands it over: what the engine sees, and what the store keeps beside it.
struct Submission {
  std::string client;
  std::string key;
  std::uint64_t content{0};  ///< hash of the request
  std::vector<NewArray> arrays;
  std::vector<store::Recipe> recipes;  ///< one for each array
  std::vector<std::string> advice{};   ///< for who submits
  std::optional<ReadBy> read_by{};
  std::vector<std::string> notify{};  ///< who is told when all of it has ended
};

/// Dependencies by ids that numbered arrays have taken for their tasks, as the second says, become
/// such on these tasks.
void name_tasks(std::vector<NewArray>& arrays, const std::map<ArrayId, TaskId>& tasks);

/// What its user counts an array's tasks by: their places in a list of items, or indices.
enum class Counting : std::uint8_t { Places, FromZero, FromOne };
/// Of its recipe, as the store keeps it.
Counting counting_of(const std::string& recipe);
/// Ids count from 1, also of an array whose indices begin at 0: tasks that such an array and another pair by their ids
/// would have different indices.  One sentence where that is so; `before` are the arrays of earlier submissions.
std::optional<std::string> why_not_paired(const Submission& submission,
                                          const std::map<ArrayId, Counting>& before);

struct SubmitRefusal {
  std::string text;
  bool conflict{false};
  bool not_now{false};
};
using SubmitAnswer = std::function<void(std::variant<std::vector<ArrayId>, SubmitRefusal>)>;

/// How many tasks were changed; of those that are cancelled `at_pilots` are told to end, and beside
/// those that are held so many go on; of those that run again `dependants` were not named, but could
/// not start because of the others, and of the same arrays `others`, which wait, have the new needs, and `later` would
/// have them if they were retried, too.
struct Changed {
  std::uint64_t tasks{0}, at_pilots{0}, dependants{0}, others{0}, later{0};
};
using CountAnswer = std::function<void(const Result<Changed>&)>;

/// Ended tasks that are to run again.
struct Retry {
  std::vector<Selection> tasks;
  store::AgainOnly only;
  NeedsChange change;  ///< of the arrays' needs
};

/// Submissions that are told other terms, all or none.
struct Update {
  std::vector<ArrayId> arrays;
  TermsChange change;
};

/// On the loop's thread, on which answers come too.
class ClientRequests {
 public:
  /// All that is named outlives this; the engine is there before anything is called.
  struct Dependencies {
    Writer& writer;
    const std::unique_ptr<Engine>& engine;
    std::function<void(WaitsFor, Writer::Then)> after;
    std::function<void(const Event&)> feed;
    std::function<void(TasksSubmitted)> feed_submit;
    std::function<std::optional<std::string>()> refuses;  ///< why nothing new can be accepted
    std::function<bool()> is_stopped;                     ///< the engine hears nothing more
    std::function<void(std::uint64_t)> given;  ///< that and all ids below it are on the disk
  };
  explicit ClientRequests(Dependencies around) : dependencies_(std::move(around)) {}

  void submit(Submission submission, SubmitAnswer answer);
  void cancel(std::vector<Selection> tasks, CountAnswer answer);
  /// What runs ends, and runs again.
  void requeue(std::vector<Selection> tasks, CountAnswer answer);
  void update(Update asked, CountAnswer answer);
  /// Who waits for what it has submitted is there once more than before, or once less.
  void reader_heard(const std::string& reader, bool is_there);
  /// Its `request` is set here.
  void keep(KeepAsked event, CountAnswer answer);
  /// Counts shapes that were paused.
  void resume(const std::string& site, CountAnswer answer);
  void hold(std::vector<Selection> tasks, bool hold, CountAnswer answer);
  void retry(Retry asked, CountAnswer answer);

  // For the actions.
  std::vector<store::Recipe> take_recipes(RequestId request);
  std::vector<std::string> take_notify(RequestId request);
  void answer(const AnswerSubmit& action);
  void answer(const AnswerRefused& action);
  void answer(const AnswerCount& action);

 private:
  RequestId new_request() { return RequestId{next_++}; }
  void name_submission(RequestId request);
  void feed_submission(RequestId request, std::vector<EndedArray> ended);
  void refuse(RequestId request, const std::string& why);
  std::vector<ArrayId> unheld_dependencies(const std::vector<NewArray>& arrays) const;

  Dependencies dependencies_;
  std::uint64_t next_{1};
  std::unordered_map<std::uint64_t, SubmitAnswer> submit_answers_;
  std::unordered_map<std::uint64_t, CountAnswer> count_answers_;
  std::unordered_map<std::uint64_t, Submission> submissions_;
};

}  // namespace hpcbatch
