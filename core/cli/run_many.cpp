#include "cli/run_many.hpp"

#include "cli/engine_start.hpp"
#include "cli/exit.hpp"
#include "cli/joblog.hpp"
#include "cli/many.hpp"
#include "cli/patient.hpp"
#include "cli/streamed_task.hpp"
#include "cli/submission.hpp"
#include "cli/submit_safely.hpp"
#include "cli/task_output.hpp"
#include "cli/task_states.hpp"
#include "cli/values.hpp"
#include "cli/wait_view.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>

#include <signal.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

constexpr int kManyOutputClosed = 128 + SIGPIPE;
/// How long the engine is asked to wait for ends: short where somebody watches.
constexpr std::chrono::seconds kWatchedRun{1};
constexpr std::chrono::seconds kUnwatchedRun{20};
constexpr std::chrono::seconds kMarginForEnds{30};
/// What has been cancelled ends within that, or is not waited for.
constexpr std::chrono::seconds kLastWait{10};

void say_of_run(const std::string& text) {
  std::fprintf(stderr, "hpcbatch: %s\n", text.c_str());
}

class ManyRun {
 public:
  ManyRun(const RunCommand& command, const Session& session)
      : command_(command),
        session_(session),
        client_(session.client()),
        engine_(client_, session, status_) {
    if (!command.joblog.empty()) joblog_.emplace(command.joblog, command.resume);
  }

  void submit();
  int follow();

 private:
  void look_at_what_there_is();
  void take_up_again();
  void take_ends();
  void take_all_ends();
  void has_ended(const IndexSet& indices);
  void tell_trouble(const json::object& event) const;
  void print_all_that_can_be();
  std::optional<std::uint32_t> next_to_print();
  void print(std::uint32_t index);
  void show_progress();
  json::object counts();
  void cancel();
  std::string body() const { return json::serialize(json::object{{"ids", json::array{id_}}}); }
  json::object get(const std::string& target) { return engine_.get(target); }

  const RunCommand& command_;
  const Session& session_;
  EngineClient client_;
  StatusLine status_;
  PatientClient engine_;
  WaitView view_{status_, false};
  Clock::time_point shown_{};
  std::optional<Joblog> joblog_;
  std::string id_, feed_, cursor_;
  IndexSet open_;               ///< have not ended, as far as we know
  IndexSet unprinted_;          ///< of all, for those that are printed in their order
  IndexSet skipped_;            ///< had ended well before
  std::deque<IndexSet> ended_;  ///< and are to be printed, in the order of their ends
  int signal_{0};
  Clock::time_point give_up_{};
};

void ManyRun::submit() {
  const Surroundings around = look_around();
  for (const std::string& name : around.left_out)
    say_of_run("the variable " + name + " is not handed on: its value is not valid UTF-8");
  json::object task =
      task_of_many(command_.work, command_.many, around.directory, session_.interrupt);
  // What is handed on as it comes must be whole: whoever reads it sees no mark in it.
  if (command_.work.output_limit.empty()) task["output_limit"] = "none";
  const std::string client = client_name(around.environment);
  const json::object request = submission_of({std::move(task)}, around, client,
                                             command_.key.empty() ? random_key() : command_.key);
  connect_or_start(client_, session_.places, session_.interrupt, Lifetime::UntilIdle);
  feed_ = "/v1/events?client=" + encode_part(client);
  cursor_ = text_at(client_.get(feed_ + "&after=now"), "cursor");
  try {
    id_ = submit_safely(client_, session_, request).front();
    look_at_what_there_is();
  } catch (const InterruptedByUser&) {
    withdraw(session_.places, request);
    throw;
  }
}

void ManyRun::look_at_what_there_is() {
  const auto all = parse_index_set(text_at(client_.get("/v1/arrays/" + id_), "indices"));
  if (!all) throw CommandError(kExitNoEngine, "the engine named no indices of " + id_);
  open_ = unprinted_ = *all;
  if (!command_.key.empty()) take_up_again();
}

/// Of a key that was used before some may have ended.
void ManyRun::take_up_again() {
  const auto ask = [this](const std::string& target) { return client_.get(target); };
  if (command_.resume) {
    client_.post("/v1/tasks/retry", json::object{{"ids", json::array{id_}}});
    skipped_ = indices_in_state(ask, id_, "done");
    open_.remove(skipped_);
    unprinted_.remove(skipped_);
    if (!skipped_.empty())
      say_of_run(whole(static_cast<double>(skipped_.size())) + " of " + id_ +
                 " ended well before; the rest is run");
    return;
  }
  take_all_ends();
}

void ManyRun::take_all_ends() {
  const auto ask = [this](const std::string& target) { return get(target); };
  for (const char* state : {"done", "failed", "cancelled"})
    has_ended(indices_in_state(ask, id_, state));
}

void ManyRun::has_ended(const IndexSet& indices) {
  IndexSet news = indices.intersection(open_);
  // Those ended while we looked at what had ended before.
  const IndexSet late = indices.intersection(skipped_);
  skipped_.remove(late);
  unprinted_.add(late);
  news.add(late);
  open_.remove(indices);
  if (!news.empty()) ended_.push_back(std::move(news));
}

void ManyRun::take_ends() {
  const std::chrono::seconds wait =
      status_.is_visible() || signal_ != 0 ? kWatchedRun : kUnwatchedRun;
  const json::object feed = engine_.get(
      feed_ + "&after=" + cursor_ + "&wait=" + std::to_string(wait.count()), wait + kMarginForEnds);
  cursor_ = text_at(feed, "cursor");
  if (flag_at(feed, "pruned")) return take_all_ends();
  const json::array* events = array_at(feed, "events");
  if (events == nullptr) return;
  for (const json::value& event : *events) {
    if (!event.is_object()) continue;
    const auto indices = indices_of(text_at(event.get_object(), "id"), id_);
    if (!indices) continue;
    tell_trouble(event.get_object());
    has_ended(*indices);
  }
}

/// A command that ended with an exit code has said itself why.
void ManyRun::tell_trouble(const json::object& event) const {
  const std::string failure = text_at(event, "failure"), message = text_at(event, "message");
  if (failure == "ok" || signal_ != 0) return;
  if (failure == "tool_failed" && (message.empty() || message.starts_with("exit "))) return;
  const std::string id = text_at(event, "id");
  const bool is_one = id.find_first_of("-,") == std::string::npos;
  say_of_run((is_one ? "task " : "tasks ") + id + " ended: " + failure +
             (message.empty() ? "" : ": " + message));
}

std::optional<std::uint32_t> ManyRun::next_to_print() {
  if (!command_.keep_order) {
    if (ended_.empty()) return std::nullopt;
    const std::uint32_t index = ended_.front().ranges().back().first;
    ended_.front().remove(IndexRange{index, index});
    if (ended_.front().empty()) ended_.pop_front();
    return index;
  }
  if (unprinted_.empty()) return std::nullopt;
  const std::uint32_t index = unprinted_.ranges().back().first;
  if (open_.contains(index)) return std::nullopt;
  unprinted_.remove(IndexRange{index, index});
  return index;
}

void ManyRun::print_all_that_can_be() {
  while (const auto index = next_to_print()) {
    print(*index);
    show_progress();
  }
  std::fflush(stdout);
}

void ManyRun::print(std::uint32_t index) {
  LogCommand log;
  log.prefix = command_.prefix;
  const std::string task = id_ + "." + std::to_string(index);
  status_.clear();
  const auto ask = [this](const std::string& target) { return get(target); };
  print_task(ask, {log, task, true});
  if (joblog_) joblog_->add(index, get("/v1/tasks/" + task));
}

json::object ManyRun::counts() {
  return engine_.post("/v1/tasks/wait",
                      json::serialize(json::object{{"ids", json::array{id_}}, {"timeout", 0}}));
}

void ManyRun::show_progress() {
  if (!status_.is_visible() || signal_ != 0 || Clock::now() - shown_ < kWatchedRun) return;
  shown_ = Clock::now();
  view_.progress(counts());
}

/// On a connection of its own, which is not to be interrupted by what led here.
void ManyRun::cancel() {
  HttpClient http(sockets_of(session_.places), -1);
  const Answer answer = http.request("POST", "/v1/tasks/cancel", body(), kLastWait);
  if (answer.outcome != Exchange::Answered || answer.status != 200)
    say_of_run("the engine could not be told: " + id_ + " goes on");
}

int ManyRun::follow() {
  for (;;) {
    try {
      print_all_that_can_be();
      while (!open_.empty()) {
        if (signal_ != 0 && Clock::now() >= give_up_) break;
        take_ends();
        print_all_that_can_be();
        show_progress();
      }
      if (signal_ == 0) return view_.end(counts(), {id_});
      break;
    } catch (const OutputClosed&) {
      cancel();
      return kManyOutputClosed;
    } catch (const InterruptedByUser&) {
      const int signal = session_.interrupt.take();
      // The second time the user means us.
      if (signal_ != 0) break;
      status_.clear();
      signal_ = signal != 0 ? signal : SIGINT;
      give_up_ = Clock::now() + kLastWait;
      cancel();
    }
  }
  say_of_run("cancelled by user; `hpcbatch retry " + id_ + "` runs again what did not end well");
  return 128 + signal_;
}

}  // namespace

int run_many(const RunCommand& command, const Session& session) {
  // Whoever reads our output may go away first; that is an answer of write() here and not our
  // death.
  ::signal(SIGPIPE, SIG_IGN);
  ManyRun run(command, session);
  run.submit();
  return run.follow();
}

}  // namespace hpcbatch
