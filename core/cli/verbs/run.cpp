// `run`: tasks whose output, and of one also input and end, are those of this process.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "cli/verbs/follow.hpp"
#include "cli/verbs/verbs.hpp"
#include "model/item.hpp"
#include "posix/files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

// What `run` does with its own standard input: names it, forwards it, or leaves it out.

/// What a task is to get as its standard input.
struct OwnInput {
  enum class Kind {
    None,    ///< closed, /dev/null, or a terminal that belongs to somebody else
    File,    ///< a regular file, from its beginning: the task opens `path` itself
    Stream,  ///< a pipe, a terminal, the rest of a file: forwarded piece by piece
  };
  Kind kind{Kind::None};
  std::string path;
};

/// A task may wait for days before it takes its input.
constexpr std::chrono::hours kNoEnd{24 * 365};
constexpr std::chrono::milliseconds kLookAgain{500};
/// An engine that is being restarted is back by then.
constexpr std::chrono::seconds kInputAway{60};
constexpr std::chrono::milliseconds kSendInputEvery{200};
/// What is cancelled has this long to end before we go without it.
constexpr std::chrono::seconds kCancelTime{2};
constexpr std::chrono::seconds kManyCancelTime{10};
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
  say("the engine is away and the rest of the input is lost: " +
      (is_cancelled ? "task " + id + " is cancelled"
                    : "once an engine runs again, end it with `hpcbatch cancel " + id + "`"));
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

/// Sends all of a descriptor to a task's standard input, in a thread of its own, until it ends, the
/// task takes no more, or the forwarder is destroyed.
class InputForwarder {
 public:
  InputForwarder(const Places& places, const std::string& id, int source)
      : stop_(::eventfd(0, EFD_CLOEXEC)),
        thread_([places, id, source, stop = stop_.get()] { forward(places, id, source, stop); }) {}
  ~InputForwarder() {
    const std::uint64_t one = 1;
    // Only a full counter could refuse, and this is its first.
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  InputForwarder(const InputForwarder&) = delete;
  InputForwarder& operator=(const InputForwarder&) = delete;

 private:
  Fd stop_;
  std::jthread thread_;
};

// A file with a line for each task that has ended, as GNU parallel's --joblog.

constexpr const char* kHeader =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// Its seventh column.
std::string_view exit_value(std::string_view line) {
  for (int column = 0; column < 6; ++column) line.remove_prefix(line.find('\t') + 1);
  return line.substr(0, line.find('\t'));
}

class Joblog {
 public:
  /// Opens it and changes nothing yet.  Throws CommandError.
  explicit Joblog(const std::string& file)
      : file_(file), opened_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666)) {
    if (!opened_) refuse(errno);
  }

  /// A new one, in place of what was there.
  void begin() {
    // A pipe or a device has nothing to forget.
    if (::ftruncate(opened_.get(), 0) != 0 && errno != EINVAL) refuse(errno);
    write(kHeader);
  }

  /// Goes on with what is there; returns the numbers that ended well in it.
  std::set<std::uint64_t> resume() {
    std::string text;
    char piece[65536];
    off_t at = 0;
    for (ssize_t size = 0; (size = ::pread(opened_.get(), piece, sizeof piece, at)) > 0; at += size)
      text.append(piece, static_cast<std::size_t>(size));
    if (text.empty()) write(kHeader);
    // Its last line may have been cut off.
    if (!text.empty() && text.back() != '\n') write("\n");
    std::set<std::uint64_t> numbers;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
      // What failed then may have ended well since.
      const bool ended_well =
          std::count(line.begin(), line.end(), '\t') == 8 && exit_value(line) == "0";
      if (error == std::errc{} && *end == '\t' && ended_well) numbers.insert(number);
    }
    return numbers;
  }

  /// Each line is there as soon as this returns.  Throws OutputClosed.
  void add(std::uint64_t number, const json::object& task) {
    write(joblog_line(number, task) + "\n");
  }

 private:
  std::string why(int error) const {
    return "cannot write the joblog " + file_ + ": " + std::strerror(error);
  }
  [[noreturn]] void refuse(int error) const { throw CommandError(kExitUsage, why(error)); }
  void write(const std::string& text) const {
    if (const int error = write_all(opened_.get(), text); error != 0)
      throw OutputClosed(why(error), false);
  }

  std::string file_;
  Fd opened_;
};

json::object task_to_run(const RunCommand& command, const OwnInput& input,
                         const Surroundings& around, const Interrupt& interrupt) {
  tell_missing_folders(command.work, around.directory);
  json::object task = task_of_many(command.work, command.many, around.directory, interrupt);
  tell_doubt(command.work, command.many, task);
  // What is handed on as it comes must be whole: whoever reads it sees no mark in it.
  if (!command.work.says("output_limit")) task["output_limit"] = "none";
  if (input.kind == OwnInput::Kind::File) task["stdin"] = as_it_stands(input.path);
  if (input.kind == OwnInput::Kind::Stream) task["stream_input"] = true;
  return task;
}

/// Asked before the submit: what is quick has ended when that is answered.
bool was_used(EngineClient& client, const std::string& name, const std::string& key) {
  if (key.empty()) return false;
  const Answer answer = client.http().request(
      "GET", "/v1/keys?client=" + encode_part(name) + "&key=" + encode_part(key), {},
      EngineClient::kAnswerTime);
  if (answer.outcome == Exchange::Answered && answer.status == 404) return false;
  client.object_of(answer);
  return true;
}

/// Of a key that was used before some may have ended.
void take_up_again(const RunCommand& command, EngineClient& client, ManyFollower& follower,
                   const std::string& id, Joblog* joblog) {
  if (!command.resume) {
    if (joblog) joblog->begin();
    return follower.take_up_ended();
  }
  // Before anything is run again: what ends from now on is printed.
  const IndexSet done = follower.leave_out_done();
  client.post("/v1/tasks/retry", json::object{{"ids", json::array{id}}});
  if (!done.empty()) {
    say(std::to_string(done.size()) + " of the tasks of " + id +
        " ended well before and are not run again; `hpcbatch log " + id +
        "` has what they printed");
  }
  if (!joblog) return;
  // Whoever was killed has not told of all.
  const std::set<std::uint64_t> told = joblog->resume();
  for (const IndexRange& range : done.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      if (!told.contains(i))
        joblog->add(i, client.get("/v1/tasks/" + id + "." + std::to_string(i)));
    }
  }
}

/// The tasks may have been accepted: their key tells which they are, and they are cancelled.
void withdraw(const Places& places, const json::object& request) {
  HttpClient http(sockets_of(places), -1);
  const Answer answer = http.request("POST", "/v1/tasks", json::serialize(request), kCancelTime);
  if (answer.outcome != Exchange::Answered || answer.status != 200) return;
  const json::object accepted = object_of(answer);
  if (const json::array* ids = array_at(accepted, "ids")) cancel_now(places, *ids, kCancelTime);
}

/// `what` names the work; what has been cancelled ends within `last_wait`, or is not waited for.
int run_to_the_end(OutputFollower& follower, const Session& session, const std::string& id,
                   const std::string& what, std::chrono::seconds last_wait) {
  using Why = OutputFollower::Why;
  const bool is_many = what == id;
  const Why why = follower.follow();
  if (why == Why::Ended) return follower.tell_end();
  const int signal = why == Why::Interrupted ? session.interrupt.take() : 0;
  const int code = 128 + (signal == 0 ? SIGINT : signal);
  if (is_many && why == Why::Interrupted) say("ending " + id + "; what runs has 5 s for it");
  const bool is_told = cancel_now(session.places, {id}, last_wait);
  if (!is_told) say("the engine could not be told: " + what + " goes on");
  if (why == Why::OutputClosed && follower.trouble().empty()) return kExitOutputClosed;
  if (why == Why::OutputClosed)
    throw CommandError(kExitOwnFailure,
                       follower.trouble() + (is_told ? "; " + what + " is ended" : ""));
  if (!is_told) return code;
  follower.hush();
  Why again = Why::Late;
  try {
    // The second time the user means us.
    again = follower.follow(OutputFollower::Clock::now() + last_wait);
    if (again == Why::Interrupted) session.interrupt.take();
  } catch (const CommandError&) {
    // An engine that goes away now has been told.
  }
  say("cancelled by user" + (again == Why::Ended ? "" : "; " + what + " is still ending") +
      (is_many ? "; `hpcbatch retry " + id + "` runs again what did not end well" : ""));
  return code;
}

}  // namespace

int perform(const RunCommand& command, const Session& session) {
  refuse_repeated(command.work, kExitOwnFailure);
  // Whoever reads our output may go away first; that is an answer of write() here and not our
  // death.
  ::signal(SIGPIPE, SIG_IGN);
  std::optional<Joblog> joblog;
  if (!command.joblog.empty()) joblog.emplace(command.joblog);
  const Surroundings around = look_around();
  const std::string name = client_name();
  OwnInput input;
  if (!is_many(command.many) && !command.work.says("stdin")) input = look_at_input(STDIN_FILENO);
  json::array tasks{task_to_run(command, input, around, session.interrupt)};
  EngineClient client = session.client();
  connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  resolve_waits(client, tasks, [] {});
  if (!leave_out_done(client, command.many, tasks.front().as_object())) return kExitDone;
  const json::object request = submission_of(std::move(tasks), around, name,
                                             command.key.empty() ? random_key() : command.key);
  std::optional<ManyFollower> many;
  if (is_many(command.many)) {
    many.emplace(
        client, session,
        ManyFollower::Options{.log = {.prefix = command.prefix},
                              .keep_order = command.keep_order,
                              .tells_exits = command.many.halt.has_value(),
                              .printed = [&](std::uint32_t index, const json::object& task) {
                                if (joblog) joblog->add(index, task);
                              }});
    many->begin(name);
  }
  const bool is_again = was_used(client, name, command.key);
  std::string id;
  try {
    id = submit_safely(client, session, request).front();
    if (many) many->follow_these(id);
    if (many && is_again)
      take_up_again(command, client, *many, id, joblog ? &*joblog : nullptr);
    else if (joblog && command.resume)
      joblog->resume();
    else if (joblog)
      joblog->begin();
  } catch (const InterruptedByUser&) {
    withdraw(session.places, request);
    throw;
  }
  if (many) return run_to_the_end(*many, session, id, id, kManyCancelTime);
  StreamedTask task(client, session, id);
  std::optional<InputForwarder> forwarder;
  if (input.kind == OwnInput::Kind::Stream) forwarder.emplace(session.places, id, STDIN_FILENO);
  return run_to_the_end(task, session, id, "task " + id, kCancelTime);
}

}  // namespace hpcbatch
