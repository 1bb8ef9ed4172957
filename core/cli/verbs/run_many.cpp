#include "cli/verbs/run_many.hpp"

#include "cli/client/cancel_now.hpp"
#include "cli/client/done_items.hpp"
#include "cli/client/engine_start.hpp"
#include "cli/client/named.hpp"
#include "cli/client/submit_safely.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/many.hpp"
#include "cli/tasks/submission.hpp"
#include "cli/verbs/joblog.hpp"
#include "cli/verbs/many_follower.hpp"
#include "cli/verbs/streamed_task.hpp"

#include <boost/json/array.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <set>

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
  if (command.work.output_limit.empty()) task["output_limit"] = "none";
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

}  // namespace hpcbatch
