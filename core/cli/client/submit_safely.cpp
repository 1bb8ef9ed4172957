#include "cli/client/submit_safely.hpp"

#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdio>

namespace hpcbatch {
namespace {

/// A million tasks take the engine a while to read.
constexpr std::chrono::minutes kSubmitTime{10};
constexpr std::chrono::milliseconds kBetweenTries{200};
constexpr int kTries = 5;

/// An engine that is older than this program, where the program runs in a task.
bool knows_no_within(const Answer& answer) {
  return answer.outcome == Exchange::Answered && answer.status == 400 &&
         answer.body.find("'within' is no key of a submit") != std::string::npos;
}

/// Only `explain` uses it.
std::string without_within(boost::json::object request) {
  request.erase("within");
  return boost::json::serialize(request);
}

}  // namespace

std::vector<std::string> submit_safely(EngineClient& client, const Session& session,
                                       const boost::json::object& request) {
  std::string body = boost::json::serialize(request);
  Answer answer;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt > 0) session.interrupt.pause(kBetweenTries);
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
    answer = client.http().request("POST", "/v1/tasks", body, kSubmitTime);
    if (knows_no_within(answer)) {
      body = without_within(request);
      answer = client.http().request("POST", "/v1/tasks", body, kSubmitTime);
    }
    if (answer.outcome != Exchange::Lost && answer.outcome != Exchange::NoEngine) break;
  }
  const boost::json::object accepted = object_of(answer);
  const boost::json::array* ids = array_at(accepted, "ids");
  if (ids == nullptr || ids->empty())
    throw CommandError(kExitNoEngine, "the engine accepted the tasks but named no ids");
  if (const boost::json::array* advice = array_at(accepted, "advice")) {
    for (const boost::json::value& one : *advice) {
      if (one.is_string())
        std::fprintf(stderr, "hpcbatch: %s\n", one_line(one.get_string()).c_str());
    }
  }
  std::vector<std::string> out;
  for (const boost::json::value& id : *ids) {
    if (!id.is_string())
      throw CommandError(kExitNoEngine, "the engine named an id that is no text");
    out.emplace_back(id.get_string());
  }
  return out;
}

}  // namespace hpcbatch
