#include "cli/verbs/streamed_task.hpp"

#include "cli/client/cancel_now.hpp"
#include "cli/client/engine_revival.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/task_output.hpp"
#include "posix/write_all.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <utility>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// A cancelled task has this long to end before we go without it.
constexpr std::chrono::milliseconds kCancelStreamTime{2000};
constexpr std::chrono::milliseconds kShowStreamEvery{1000};
constexpr std::chrono::milliseconds kNothingToDo{60'000};
/// Where nobody watches a line that changes.
constexpr std::chrono::milliseconds kTellStreamEvery{30'000};
constexpr std::chrono::milliseconds kStreamEvery{100};

}  // namespace

StreamedTask::End StreamedTask::stream() {
  for (;;) {
    to_skip_ = written_;
    is_broken_ = false;
    {
      const auto lines = client_.http().follow("/v1/tasks/" + id_ + "/log?follow=1");
      while (!is_broken_) {
        if (const auto end = take(lines->next(patience()))) return *end;
      }
    }
    if (const auto end = reconnect()) return *end;
  }
}

std::chrono::milliseconds StreamedTask::patience() const {
  if (signal_ != 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_ - Clock::now());
    return std::max(left, std::chrono::milliseconds{1});
  }
  if (!is_waiting_) return kNothingToDo;
  return status_.is_visible() ? kShowStreamEvery : kTellStreamEvery;
}

std::optional<StreamedTask::End> StreamedTask::take(const LineStream::Next& next) {
  if (signal_ != 0 && Clock::now() >= give_up_) return interrupted_end();
  switch (next.kind) {
    case LineStream::Next::Kind::Line:
      return take_line(next.line);
    case LineStream::Next::Kind::Idle:
      show_waiting();
      return {};
    case LineStream::Next::Kind::End:
      is_broken_ = true;
      return {};
    case LineStream::Next::Kind::Failed:
      break;
  }
  if (next.failure.outcome == Exchange::Interrupted) return interrupted();
  if (next.failure.outcome == Exchange::Answered && next.failure.status != kBusyStatus)
    object_of(next.failure);  // throws what the engine says
  is_broken_ = true;
  return {};
}

std::optional<StreamedTask::End> StreamedTask::take_line(const std::string& line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  if (error || !value.is_object())
    throw CommandError(kExitNoEngine, "the engine sent a line of output that is not JSON");
  const json::object& object = value.get_object();
  if (const json::object* task = object_at(object, "end")) {
    status_.clear();
    return End{signal_ != 0 ? Why::Interrupted : Why::Ended, *task, signal_, is_cancelled_};
  }
  if (!object.contains("stream")) return {};
  const int why = write(text_at(object, "stream") == "stderr" ? 1 : 0, bytes_of(object));
  if (why == 0) return {};
  cancel();
  return End{Why::OutputClosed, {}, 0, is_cancelled_, why};
}

int StreamedTask::write(std::size_t stream, std::string_view bytes) {
  is_waiting_ = false;
  status_.clear();
  const auto repeated = std::min<std::uint64_t>(to_skip_[stream], bytes.size());
  to_skip_[stream] -= repeated;
  bytes.remove_prefix(repeated);
  written_[stream] += bytes.size();
  return write_all(stream == 1 ? STDERR_FILENO : STDOUT_FILENO, bytes);
}

std::optional<StreamedTask::End> StreamedTask::interrupted() {
  const int signal = session_.interrupt.take();
  if (signal == 0) return {};
  // The second time the user means us.
  if (signal_ != 0) return interrupted_end();
  signal_ = signal;
  give_up_ = Clock::now() + kCancelStreamTime;
  status_.clear();
  cancel();
  if (!is_cancelled_) return interrupted_end();
  return {};
}

void StreamedTask::cancel() {
  is_cancelled_ = cancel_now(session_.places, {id_}, kCancelStreamTime);
}

/// Once for each reason; how long it has waited changes all the time.
void StreamedTask::tell_waiting(const std::string& state, std::string text) {
  std::string reason = text;
  std::erase_if(reason, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (std::exchange(told_, reason) == reason) return;
  text = "hpcbatch: task " + id_ + " is " + state + ": " + text;
  std::fputs((lines_for(STDERR_FILENO, text, 2) + "\n").c_str(), stderr);
}

void StreamedTask::show_waiting() {
  if (!is_waiting_ || signal_ != 0) return;
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

std::optional<StreamedTask::End> StreamedTask::reconnect() {
  client_.http().disconnect();
  EngineAbsence away(Clock::now());
  EngineRevival revival(session_, status_);
  while (!away.is_too_long(Clock::now())) {
    if (signal_ != 0 && Clock::now() >= give_up_) return interrupted_end();
    try {
      session_.interrupt.pause(kStreamEvery);
      const Answer answer = client_.http().connect();
      if (answer.outcome == Exchange::Answered) return {};
      if (answer.outcome == Exchange::Refused) object_of(answer);
      revival.tried(client_, answer);
    } catch (const InterruptedByUser&) {
      if (auto end = interrupted()) return end;
    }
    if (away.is_to_be_told(Clock::now())) {
      status_.clear();
      std::fputs(kAwayText, stderr);
    }
  }
  throw CommandError(kExitNoEngine, "the engine went away; task " + id_ +
                                        " is safe: once an engine runs again, see `hpcbatch log " +
                                        id_ + "`");
}

StreamedTask::End StreamedTask::interrupted_end() const {
  return {Why::Interrupted, {}, signal_, is_cancelled_};
}

void withdraw(const Places& places, const json::object& request) {
  HttpClient http(sockets_of(places), -1);
  const Answer answer =
      http.request("POST", "/v1/tasks", json::serialize(request), kCancelStreamTime);
  if (answer.outcome != Exchange::Answered || answer.status != 200) return;
  const json::object accepted = object_of(answer);
  if (const json::array* ids = array_at(accepted, "ids"))
    cancel_now(places, *ids, kCancelStreamTime);
}

}  // namespace hpcbatch
