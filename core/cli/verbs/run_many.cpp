#include "cli/verbs/run_many.hpp"

#include "cli/client/done_items.hpp"
#include "cli/client/engine_client.hpp"
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "cli/verbs/log.hpp"
#include "cli/verbs/run.hpp"
#include "documents/texts.hpp"
#include "posix/files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// What has been cancelled ends within that, or is not waited for.
constexpr std::chrono::seconds kLastWait{10};

void say_of_run(const std::string& text) {
  std::fputs((lines_for(STDERR_FILENO, "hpcbatch: " + text, 2) + "\n").c_str(), stderr);
}

json::array tasks_to_run(const RunCommand& command, const Session& session,
                         const Surroundings& around) {
  tell_missing_folders(command.work, around.directory);
  json::object task = task_of_many(command.work, command.many, around.directory, session.interrupt);
  tell_doubt(doubt_of(command.work, command.many, task));
  // What is handed on as it comes must be whole: whoever reads it sees no mark in it.
  if (!command.work.says("output_limit")) task["output_limit"] = "none";
  return {std::move(task)};
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
    say_of_run(std::to_string(done.size()) + " of the tasks of " + id +
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

bool cancel_all(const Places& places, const std::string& id) {
  const bool is_told = cancel_now(places, {id}, kLastWait);
  if (!is_told) say_of_run("the engine could not be told: " + id + " goes on");
  return is_told;
}

int follow_to_the_end(ManyFollower& follower, const Session& session, const std::string& id) {
  using Why = ManyFollower::Why;
  const Why why = follower.follow();
  if (why == Why::Ended) return follower.tell_end();
  int signal = SIGINT;
  if (why == Why::Interrupted) {
    if (const int taken = session.interrupt.take(); taken != 0) signal = taken;
  }
  if (why == Why::Interrupted) say_of_run("ending " + id + "; what runs has 5 s for it");
  const bool is_told = cancel_all(session.places, id);
  if (why == Why::OutputClosed && follower.trouble().empty()) return kExitOutputClosed;
  if (why == Why::OutputClosed) throw CommandError(kExitOwnFailure, follower.trouble());
  if (!is_told) return 128 + signal;
  follower.hush();
  try {
    // The second time the user means us.
    const Why again = follower.follow(std::chrono::steady_clock::now() + kLastWait);
    if (again == Why::Interrupted) session.interrupt.take();
  } catch (const CommandError&) {
    // An engine that goes away now has been told.
  }
  say_of_run("cancelled by user; `hpcbatch retry " + id + "` runs again what did not end well");
  return 128 + signal;
}

}  // namespace

int run_many(const RunCommand& command, const Session& session) {
  // Whoever reads our output may go away first; that is an answer of write() here and not our
  // death.
  ::signal(SIGPIPE, SIG_IGN);
  std::optional<Joblog> joblog;
  if (!command.joblog.empty()) joblog.emplace(command.joblog);
  ManyFollower::Options options{.keep_order = command.keep_order,
                                .tells_exits = command.many.halt.has_value()};
  options.log.prefix = command.prefix;
  if (joblog)
    options.printed = [&joblog](std::uint32_t index, const json::object& task) {
      joblog->add(index, task);
    };
  const Surroundings around = look_around();
  const std::string name = client_name();
  json::array tasks = tasks_to_run(command, session, around);
  EngineClient client = session.client();
  connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  resolve_waits(client, tasks, [] {});
  if (!leave_out_done(client, command.many, tasks.front().as_object())) return kExitDone;
  const json::object request = submission_of(std::move(tasks), around, name,
                                             command.key.empty() ? random_key() : command.key);
  ManyFollower follower(client, session, std::move(options));
  follower.begin(name);
  const bool is_again = was_used(client, name, command.key);
  std::string id;
  try {
    id = submit_safely(client, session, request).front();
    follower.follow_these(id);
    if (is_again)
      take_up_again(command, client, follower, id, joblog ? &*joblog : nullptr);
    else if (joblog && command.resume)
      joblog->resume();
    else if (joblog)
      joblog->begin();
  } catch (const InterruptedByUser&) {
    withdraw(session.places, request);
    throw;
  }
  return follow_to_the_end(follower, session, id);
}

namespace {

namespace json = boost::json;

/// How long the engine is asked to wait for ends: short where somebody watches.
constexpr std::chrono::seconds kWatchedFeed{1};
constexpr std::chrono::seconds kUnwatchedFeed{20};
constexpr std::chrono::seconds kMarginForEnds{30};

}  // namespace

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
  if (options_.log.failed_only)
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
  const json::array* events = array_at(feed, "events");
  if (events == nullptr) return;
  for (const json::value& event : *events) {
    if (!event.is_object()) continue;
    const auto indices = indices_of(text_at(event.get_object(), "id"), id_);
    if (!indices) continue;
    tell_trouble(event.get_object());
    const bool is_left_out =
        options_.log.failed_only && text_at(event.get_object(), "failure") == "ok";
    if (is_left_out)
      open_.remove(*indices);
    else
      has_ended(*indices);
  }
}

/// A command that ended with an exit code has said itself why.
void ManyFollower::tell_trouble(const json::object& event) const {
  const std::string failure = text_at(event, "failure"), message = text_at(event, "message");
  if (failure == "ok" || is_quiet_) return;
  const bool has_said_it = message.empty() || message.starts_with("exit ");
  if (failure == "tool_failed" && has_said_it && !options_.tells_exits) return;
  const std::string id = text_at(event, "id");
  const bool is_one = id.find_first_of("-,") == std::string::npos;
  std::fprintf(stderr, "hpcbatch: %s %s ended: %s%s\n", is_one ? "task" : "tasks", id.c_str(),
               failure.c_str(), message.empty() ? "" : (": " + show_lines(message)).c_str());
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
  print_task([this](const std::string& target) { return engine_.get(target); },
             {options_.log, task, true});
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

ManyFollower::Why ManyFollower::follow(std::optional<Clock::time_point> until) {
  if (until) engine_.give_up_at(*until);
  try {
    print_all_that_can_be();
    while (!open_.empty() && (!until || Clock::now() < *until)) {
      take_ends();
      print_all_that_can_be();
      show_progress();
    }
    status_.clear();
    return Why::Ended;
  } catch (const OutputClosed& closed) {
    status_.clear();
    if (!closed.is_pipe()) trouble_ = closed.what();
    return Why::OutputClosed;
  } catch (const InterruptedByUser&) {
    status_.clear();
    return Why::Interrupted;
  }
}

namespace {

constexpr const char* kHeader =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

std::string three_digits(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

/// Its seventh column.
std::string_view exit_value(std::string_view line) {
  for (int column = 0; column < 6; ++column) line.remove_prefix(line.find('\t') + 1);
  return line.substr(0, line.find('\t'));
}

}  // namespace

std::string joblog_line(std::uint64_t number, const boost::json::object& task) {
  const std::string node = text_at(task, "node");
  const std::string code = text_at(task, "exit_code");
  const std::string signal = text_at(task, "signal");
  std::string line = std::to_string(number) + "\t" + (node.empty() ? "-" : node) + "\t";
  line += three_digits(number_at(task, "started_at")) + "\t" +
          three_digits(number_at(task, "run_s")) + "\t0\t0\t";
  line += (code.empty() ? "-1" : code) + "\t" + (signal.empty() ? "0" : signal) + "\t";
  for (const char c : command_at(task, "command"))
    line += c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
  return line;
}

Joblog::Joblog(const std::string& file)
    : file_(file),
      descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666)) {
  if (descriptor_ < 0)
    throw CommandError(kExitUsage, "cannot write the joblog " + file + ": " + std::strerror(errno));
}

Joblog::~Joblog() {
  ::close(descriptor_);
}

void Joblog::begin() {
  // A pipe or a device has nothing to forget.
  if (::ftruncate(descriptor_, 0) != 0 && errno != EINVAL)
    throw CommandError(kExitUsage,
                       "cannot write the joblog " + file_ + ": " + std::strerror(errno));
  write(kHeader);
}

std::set<std::uint64_t> Joblog::resume() {
  std::string text;
  char piece[65536];
  off_t at = 0;
  for (ssize_t size = 0; (size = ::pread(descriptor_, piece, sizeof piece, at)) > 0; at += size)
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

void Joblog::add(std::uint64_t number, const boost::json::object& task) {
  write(joblog_line(number, task) + "\n");
}

void Joblog::write(const std::string& text) {
  if (const int error = write_all(descriptor_, text); error != 0)
    throw OutputClosed("cannot write the joblog " + file_ + ": " + std::strerror(error), false);
}

}  // namespace hpcbatch
