#include "cli/verbs/follow.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "posix/files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <signal.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kShowStreamEvery{1000};
constexpr std::chrono::milliseconds kNothingToDo{60'000};
/// Where nobody watches a line that changes.
constexpr std::chrono::milliseconds kTellStreamEvery{30'000};

/// How long the engine is asked to wait for ends: short where somebody watches.
constexpr std::chrono::seconds kWatchedFeed{1};
constexpr std::chrono::seconds kUnwatchedFeed{20};
constexpr std::chrono::seconds kMarginForEnds{30};

/// A command that ended with an exit code of its own has said itself why.
bool has_said_why(const json::object& end) {
  const std::string message = text_at(end, "message");
  return text_at(end, "failure") == "tool_failed" &&
         (message.empty() || message.starts_with("exit "));
}

}  // namespace

void write_out(bool is_error, std::string_view bytes) {
  const int error = write_all(is_error ? STDERR_FILENO : STDOUT_FILENO, bytes);
  if (error == 0) return;
  const std::string text = std::string("cannot write the output: ") + std::strerror(error);
  throw OutputClosed(text, error == EPIPE);
}

OutputFollower::Why OutputFollower::follow(std::optional<Clock::time_point> until) {
  if (until) engine_.give_up_at(*until);
  Why why = Why::Interrupted;
  try {
    why = follow_until(until);
  } catch (const OutputClosed& closed) {
    if (!closed.is_pipe()) trouble_ = closed.what();
    why = Why::OutputClosed;
  } catch (const InterruptedByUser&) {
    why = Why::Interrupted;
  }
  status_.clear();
  return why;
}

OutputFollower::Why StreamedTask::follow_until(std::optional<Clock::time_point> until) {
  for (;;) {
    if (!lines_) lines_ = http_.follow("/v1/tasks/" + id_ + "/log?follow=1");
    const LineStream::Next next = lines_->next(patience(until));
    switch (next.kind) {
      case LineStream::Next::Kind::Line:
        if (take_line(next.line)) return Why::Ended;
        break;
      case LineStream::Next::Kind::Idle:
        show_waiting();
        break;
      case LineStream::Next::Kind::Failed:
        // An interrupt leaves the stream as it is; what the engine says itself is thrown.
        if (next.failure.outcome == Exchange::Interrupted) throw InterruptedByUser{};
        if (next.failure.outcome == Exchange::Answered && next.failure.status != kBusyStatus)
          object_of(next.failure);
        [[fallthrough]];
      case LineStream::Next::Kind::End:
        reconnect();
    }
    if (until && Clock::now() >= *until) return Why::Late;
  }
}

std::chrono::milliseconds StreamedTask::patience(std::optional<Clock::time_point> until) const {
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
    return std::max(left, std::chrono::milliseconds{1});
  }
  if (!is_waiting_) return kNothingToDo;
  return status_.is_visible() ? kShowStreamEvery : kTellStreamEvery;
}

bool StreamedTask::take_line(const std::string& line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  if (error || !value.is_object())
    throw CommandError(kExitNoEngine, "the engine sent a line of output that is not JSON");
  const json::object& piece = value.get_object();
  const bool is_error = text_at(piece, "stream") == "stderr";
  const bool is_wanted =
      !piece.contains("stream") || (is_error ? log_.standard_error : log_.standard_output);
  if (log_.json && is_wanted) {
    hpcbatch::print(line + "\n");
    std::fflush(stdout);
  }
  if (piece.contains("stream")) {
    is_waiting_ = false;
    status_.clear();
    const std::string bytes = bytes_of(piece);
    const auto repeated = std::min<std::uint64_t>(to_skip_[is_error], bytes.size());
    to_skip_[is_error] -= repeated;
    written_[is_error] += bytes.size() - repeated;
    if (!log_.json && is_wanted)
      write_out(is_error && log_.standard_output, std::string_view(bytes).substr(repeated));
  }
  if (const json::object* task = object_at(piece, "end")) end_ = *task;
  return piece.contains("end");
}

/// Once for each reason; how long it has waited changes all the time.
void StreamedTask::tell_waiting(const std::string& state, const std::string& text) {
  std::string reason = text;
  std::erase_if(reason, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (std::exchange(told_, reason) != reason) say("task " + id_ + " is " + state + ": " + text);
}

void StreamedTask::show_waiting() {
  if (!is_waiting_ || is_quiet_) return;
  HttpClient http(sockets_of(session_.places), session_.interrupt.descriptor());
  const Answer answer = http.request("GET", "/v1/tasks/" + id_ + "/explain", {}, kShowStreamEvery);
  if (answer.outcome != Exchange::Answered || answer.status != 200) return;
  const json::object why = object_of(answer);
  const std::string state = text_at(why, "state");
  is_waiting_ = state == "waiting" || state == "held";
  if (is_waiting_ && !status_.is_visible())
    tell_waiting(state, text_at(why, "text"));
  else if (is_waiting_)
    status_.show("task " + id_ + " is " + state + ": " + text_at(why, "text"));
  else
    status_.clear();
}

void StreamedTask::reconnect() {
  // Its lines cannot be told from those that a new stream would repeat.
  if (log_.json)
    throw CommandError(kExitNoEngine,
                       "the engine ended the stream before the task ended; this happens when its "
                       "output is read much slower than it comes");
  lines_.reset();
  engine_.reconnect("the engine went away; task " + id_ +
                    " is safe: once an engine runs again, see `hpcbatch log " + id_ + "`");
  to_skip_ = written_;
}

/// As a process of the task's end ends itself.
int StreamedTask::tell_end() {
  const std::string state = text_at(end_, "state"), message = text_at(end_, "message");
  if (state != "done" && !has_said_why(end_))
    say("task " + id_ + " ended: " + text_at(end_, "failure") +
        (message.empty() ? "" : ": " + message));
  return exit_code_of(end_);
}

void ManyFollower::begin(const std::string& client) {
  feed_ = "/v1/events?client=" + encode_part(client);
  cursor_ = text_at(engine_.get(feed_ + "&after=now"), "cursor");
}

void ManyFollower::follow_these(const std::string& id) {
  id_ = id;
  const auto all = parse_index_set(text_at(engine_.get("/v1/arrays/" + id_), "indices"));
  if (!all) throw CommandError(kExitNoEngine, "the engine named no indices of " + id_);
  open_ = unprinted_ = *all;
}

IndexSet ManyFollower::in_state(const char* state) {
  return indices_where([this](const std::string& target) { return engine_.get(target); }, id_,
                       std::string("state=") + state);
}

void ManyFollower::take_up_ended() {
  if (log_.failed_only)
    open_.remove(in_state("done"));
  else
    has_ended(in_state("done"));
  for (const char* state : {"failed", "cancelled"}) has_ended(in_state(state));
}

IndexSet ManyFollower::leave_out_done() {
  skipped_ = in_state("done");
  open_.remove(skipped_);
  unprinted_.remove(skipped_);
  return skipped_;
}

void ManyFollower::has_ended(const IndexSet& indices) {
  IndexSet news = indices.intersection(open_);
  // Those ended while we looked at what had ended before.
  const IndexSet late = indices.intersection(skipped_);
  skipped_.remove(late);
  unprinted_.add(late);
  news.add(late);
  open_.remove(indices);
  if (!news.empty()) ended_.push_back(std::move(news));
}

void ManyFollower::take_ends() {
  const std::chrono::seconds wait =
      status_.is_visible() || is_quiet_ ? kWatchedFeed : kUnwatchedFeed;
  const json::object feed = engine_.get(
      feed_ + "&after=" + cursor_ + "&wait=" + std::to_string(wait.count()), wait + kMarginForEnds);
  cursor_ = text_at(feed, "cursor");
  if (flag_at(feed, "pruned")) return take_up_ended();
  for (const json::object& event : objects_at(feed, "events")) {
    const auto indices = indices_of(text_at(event, "id"), id_);
    if (!indices) continue;
    tell_trouble(event);
    const bool is_left_out = log_.failed_only && text_at(event, "failure") == "ok";
    if (is_left_out)
      open_.remove(*indices);
    else
      has_ended(*indices);
  }
}

void ManyFollower::tell_trouble(const json::object& event) const {
  const std::string failure = text_at(event, "failure"), message = text_at(event, "message");
  if (failure == "ok" || is_quiet_ || (has_said_why(event) && !options_.tells_exits)) return;
  const std::string id = text_at(event, "id");
  const bool is_one = id.find_first_of("-,") == std::string::npos;
  say((is_one ? "task " : "tasks ") + id + " ended: " + failure +
      (message.empty() ? "" : ": " + message));
}

std::optional<std::uint32_t> ManyFollower::next_to_print() {
  if (!options_.keep_order) {
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

void ManyFollower::print_all_that_can_be() {
  while (const auto index = next_to_print()) {
    print(*index);
    show_progress();
  }
  std::fflush(stdout);
}

void ManyFollower::print(std::uint32_t index) {
  const std::string task = id_ + "." + std::to_string(index);
  status_.clear();
  print_task([this](const std::string& target) { return engine_.get(target); }, {log_, task, true});
  if (options_.printed) options_.printed(index, engine_.get("/v1/tasks/" + task));
}

json::object ManyFollower::counts() {
  return engine_.post("/v1/tasks/wait",
                      json::serialize(json::object{{"ids", json::array{id_}}, {"timeout", 0}}));
}

void ManyFollower::show_progress() {
  if (!status_.is_visible() || is_quiet_ || Clock::now() - shown_ < kWatchedFeed) return;
  shown_ = Clock::now();
  view_.progress(counts());
}

OutputFollower::Why ManyFollower::follow_until(std::optional<Clock::time_point> until) {
  print_all_that_can_be();
  while (!open_.empty()) {
    if (until && Clock::now() >= *until) return Why::Late;
    take_ends();
    print_all_that_can_be();
    show_progress();
  }
  return Why::Ended;
}

}  // namespace hpcbatch
