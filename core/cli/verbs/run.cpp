#include "cli/verbs/run.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "cli/verbs/log.hpp"
#include "cli/verbs/run_many.hpp"
#include "cli/verbs/verbs.hpp"
#include "posix/files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace hpcbatch {

// `run`: one task whose output, input and end are those of this process.

namespace {

namespace json = boost::json;

void say(const std::string& text) {
  std::fputs((lines_for(STDERR_FILENO, "hpcbatch: " + text, 2) + "\n").c_str(), stderr);
}

/// How a process of the task's end ends itself.
int exit_code_for(const json::object& task) {
  const std::string state = text_at(task, "state");
  const int signal = static_cast<int>(number_at(task, "signal"));
  const int code = static_cast<int>(number_at(task, "exit_code"));
  if (state == "done") return code;
  if (signal > 0) return 128 + signal;
  if (code != 0) return code;
  if (state == "cancelled") return 128 + SIGTERM;
  // The command itself went well, or it never ran.
  return task.contains("exit_code") ? kExitTaskFailed : kExitOwnFailure;
}

void report(const std::string& id, const json::object& task) {
  const std::string failure = text_at(task, "failure");
  const std::string message = text_at(task, "message");
  // A command that ended with an exit code of its own has said itself why.
  const bool has_ended =
      failure == "tool_failed" && (message.empty() || message.starts_with("exit "));
  if (text_at(task, "state") == "done" || has_ended) return;
  say("task " + id + " ended: " + failure + (message.empty() ? "" : ": " + message));
}

struct Submitted {
  std::string id;
  OwnInput::Kind input{OwnInput::Kind::None};
};

Submitted submit(EngineClient& client, const RunCommand& command, const Session& session) {
  const Surroundings around = look_around();
  tell_missing_folders(command.work, around.directory);
  json::object task = task_of(command.work, around.directory);
  OwnInput input;
  if (!command.work.says("stdin")) input = look_at_input(STDIN_FILENO);
  // What is handed on as it comes must be whole: whoever reads it sees no mark in it.
  if (!command.work.says("output_limit")) task["output_limit"] = "none";
  if (input.kind == OwnInput::Kind::File) task["stdin"] = input.path;
  if (input.kind == OwnInput::Kind::Stream) task["stream_input"] = true;
  json::array tasks{std::move(task)};
  resolve_waits(client, tasks, [&] {
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  });
  const json::object request = submission_of(std::move(tasks), around, client_name(), random_key());
  try {
    return {submit_safely(client, session, request).front(), input.kind};
  } catch (const InterruptedByUser&) {
    // The task may have been accepted: its key tells which one it is, and it is cancelled.
    withdraw(session.places, request);
    throw;
  }
}

}  // namespace

int run_task(const RunCommand& command, const Session& session) {
  refuse_repeated(command.work, kExitOwnFailure);
  if (is_many(command.many)) return run_many(command, session);
  // Whoever reads our output may go away first; that is an answer of write() here and not our
  // death.
  ::signal(SIGPIPE, SIG_IGN);
  EngineClient client = session.client();
  const Submitted submitted = submit(client, command, session);
  StreamedTask task(client, session, submitted.id);
  std::optional<InputForwarder> input;
  if (submitted.input == OwnInput::Kind::Stream)
    input.emplace(session.places, submitted.id, STDIN_FILENO);

  const StreamedTask::End end = task.stream();
  switch (end.why) {
    case StreamedTask::Why::Ended:
      break;
    case StreamedTask::Why::OutputClosed:
      if (end.error == EPIPE) return kExitOutputClosed;
      throw CommandError(kExitOwnFailure, std::string("cannot write the output: ") +
                                              std::strerror(end.error) + "; task " + submitted.id +
                                              (end.is_cancelled ? " is ended" : " goes on"));
    case StreamedTask::Why::Interrupted:
      if (end.task) {
        say("cancelled by user");
      } else if (end.is_cancelled) {
        say("cancelled by user; task " + submitted.id + " is still ending");
      } else {
        say("the engine could not be told: task " + submitted.id + " goes on");
      }
      return 128 + end.signal;
  }
  report(submitted.id, *end.task);
  return exit_code_for(*end.task);
}

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

namespace {

/// A task may wait for days before it takes its input.
constexpr std::chrono::hours kNoEnd{24 * 365};
constexpr std::chrono::milliseconds kLookAgain{500};
/// An engine that is being restarted is back by then.
constexpr std::chrono::seconds kInputAway{60};
constexpr std::chrono::milliseconds kSendInputEvery{200};
constexpr std::chrono::seconds kCancelTime{2};
using Clock = std::chrono::steady_clock;

bool is_in_foreground(int terminal) {
  return ::tcgetpgrp(terminal) == ::getpgrp();
}

bool is_dev_null(const struct stat& what) {
  return S_ISCHR(what.st_mode) && what.st_rdev == makedev(1, 3);
}

std::string path_of(int descriptor, const struct stat& what) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size() - 1);
  if (size <= 0) return "";
  struct stat there {};
  // A deleted file, such as a shell's here-document, has no name any more.
  const bool is_it = ::stat(path.data(), &there) == 0 && there.st_ino == what.st_ino &&
                     there.st_dev == what.st_dev;
  return is_it ? path.data() : "";
}

/// Waits until there is something to read; false where it is time to stop.
bool wait_for_input(int source, int stop) {
  for (;;) {
    // Reading a terminal from the background would stop this process.
    const bool may_read = ::isatty(source) == 0 || is_in_foreground(source);
    pollfd waits[] = {{stop, POLLIN, 0}, {may_read ? source : -1, POLLIN, 0}};
    const int count = ::poll(waits, 2, may_read ? -1 : static_cast<int>(kLookAgain.count()));
    if (count < 0 && errno != EINTR) return false;
    if (count <= 0) continue;
    if (waits[0].revents != 0) return false;
    if (waits[1].revents != 0) return true;
  }
}

enum class Sent { Taken, NotWanted, Stopped, EngineAway };

/// Over restarts of the engine: the offset in the target lets it skip what the task was given
/// before.
Sent send(HttpClient& client, const std::string& target, std::string_view body, int stop) {
  auto until = Clock::now() + kInputAway;
  for (;;) {
    const auto asked = Clock::now();
    const Answer answer = client.request("POST", target, body, kNoEnd);
    switch (answer.outcome) {
      case Exchange::Answered:
        return answer.status == 200 ? Sent::Taken : Sent::NotWanted;
      case Exchange::Interrupted:
        return Sent::Stopped;
      case Exchange::Refused:
      case Exchange::TimedOut:
        return Sent::EngineAway;
      case Exchange::Lost:
        // It may have waited for hours until the task would take more.
        if (Clock::now() - asked > kSendInputEvery) until = Clock::now() + kInputAway;
        break;
      case Exchange::NoEngine:
        break;
    }
    if (Clock::now() >= until) return Sent::EngineAway;
    pollfd stopped{stop, POLLIN, 0};
    if (::poll(&stopped, 1, static_cast<int>(kSendInputEvery.count())) > 0) return Sent::Stopped;
  }
}

/// A task that waits for the rest of its input would wait for ever.
void give_up(const Places& places, const std::string& id) {
  const bool is_cancelled = cancel_now(places, {id}, kCancelTime);
  std::fprintf(
      stderr, "hpcbatch: the engine is away and the rest of the input is lost: %s\n",
      is_cancelled
          ? ("task " + id + " is cancelled").c_str()
          : ("once an engine runs again, end it with `hpcbatch cancel " + id + "`").c_str());
}

void forward(const Places& places, const std::string& id, int source, int stop) {
  HttpClient client(sockets_of(places), stop);
  const std::string input = "/v1/tasks/" + id + "/input?";
  // What the task never asks for stays with whoever reads on behind it, as in `while read`.
  const Sent asked = send(client, input + "ask=1", "", stop);
  if (asked == Sent::EngineAway) return give_up(places, id);
  if (asked != Sent::Taken) return;
  const std::string target = input + "offset=";
  std::uint64_t offset = 0;
  std::array<char, 65'536> piece;
  while (wait_for_input(source, stop)) {
    const ssize_t size = ::read(source, piece.data(), piece.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    const bool is_end = size <= 0;
    const std::string_view body(piece.data(), is_end ? 0 : static_cast<std::size_t>(size));
    const Sent sent =
        send(client, target + std::to_string(offset) + (is_end ? "&end=1" : "&end=0"), body, stop);
    if (sent == Sent::EngineAway) return give_up(places, id);
    // Whoever follows the task's output hears what became of it; here it only matters that it takes
    // no more.
    if (is_end || sent != Sent::Taken) return;
    offset += body.size();
  }
}

}  // namespace

OwnInput look_at_input(int descriptor) {
  struct stat what {};
  if (::fstat(descriptor, &what) != 0 || is_dev_null(what) || S_ISDIR(what.st_mode)) return {};
  if (::isatty(descriptor) == 1)
    return {is_in_foreground(descriptor) ? OwnInput::Kind::Stream : OwnInput::Kind::None, ""};
  if (S_ISREG(what.st_mode) && ::lseek(descriptor, 0, SEEK_CUR) == 0) {
    if (std::string path = path_of(descriptor, what); !path.empty())
      return {OwnInput::Kind::File, std::move(path)};
  }
  return {OwnInput::Kind::Stream, ""};
}

InputForwarder::InputForwarder(const Places& places, const std::string& id, int source)
    : stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_([places, id, source, stop = stop_.get()] { forward(places, id, source, stop); }) {}

InputForwarder::~InputForwarder() {
  const std::uint64_t one = 1;
  // Only a full counter could refuse, and this is its first.
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

}  // namespace hpcbatch
