#include "cli/client/engine_client.hpp"

#include "cli/process/exit.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "posix/process_start.hpp"
#include "posix/regular_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <cstdio>
#include <ctime>
#include <utility>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// From here on it is the engine that failed, not the request.
constexpr int kFirstServerError = 500;

/// One that is being killed takes connections until the last of its threads has ended.
constexpr int kTriesOfGet = 4;
constexpr std::chrono::seconds kTroubleTime{2};

std::string error_text(const Answer& answer) {
  boost::system::error_code error;
  const json::value value = json::parse(answer.body, error);
  if (!error && value.is_object()) {
    if (const json::value* text = value.get_object().if_contains("error");
        text != nullptr && text->is_string()) {
      return std::string(text->get_string());
    }
  }
  return "the engine answered with HTTP status " + std::to_string(answer.status) +
         " and no explanation";
}

std::optional<Owner> owner_of(const std::string& home) {
  return parse_owner(read_regular(AT_FDCWD, home + "/engine.lock", kLongestOwner).text);
}

/// Such a request is answered when something has happened.
bool is_long_poll(std::string_view target) {
  return target == "/v1/tasks/wait" || target.find("wait=") != std::string_view::npos;
}

std::string own_host() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return host;
}

}  // namespace

std::vector<std::string> sockets_of(const Places& places) {
  std::vector<std::string> sockets{places.socket};
  if (places.home + "/socket" != places.socket) sockets.push_back(places.home + "/socket");
  return sockets;
}

json::object object_of(const Answer& answer) {
  switch (answer.outcome) {
    case Exchange::Answered:
      break;
    case Exchange::Interrupted:
      throw InterruptedByUser{};
    case Exchange::NoEngine:
      throw CommandError(kExitNoEngine,
                         answer.error + "; no engine runs: start one with `hpcbatch engine start`");
    case Exchange::Refused:
    case Exchange::Lost:
    case Exchange::TimedOut:
      throw CommandError(kExitNoEngine, answer.error);
  }
  if (answer.status != 200) {
    throw CommandError(answer.status >= kFirstServerError ? kExitNoEngine : kExitUsage,
                       error_text(answer));
  }
  boost::system::error_code error;
  json::value value = json::parse(answer.body, error);
  if (error || !value.is_object()) {
    throw CommandError(
        kExitNoEngine,
        "the engine's answer is not a JSON object; does another program use its socket?");
  }
  return std::move(value.get_object());
}

std::optional<Owner> engine_that_died(const std::string& home) {
  auto owner = owner_of(home);
  if (!owner || owner->host != own_host() ||
      is_running(owner->process, owner->process_start, owner->boot_id))
    return std::nullopt;
  return owner;
}

std::optional<std::string> engine_out_of_reach(const Places& places) {
  const auto owner = owner_of(places.home);
  if (!owner || owner->host != own_host() ||
      !is_running(owner->process, owner->process_start, owner->boot_id))
    return std::nullopt;
  const std::string process = std::to_string(owner->process);
  const std::string since = time_at({{"at", time_of_start(owner->process_start)}}, "at");
  return "an engine runs here (process " + process + ", since " + since +
         "), but it does not listen at its socket " + places.socket +
         ". An engine that has just been started may still read its store back: then wait for it. "
         "If somebody has removed the socket, the engine makes it again within a few seconds; " +
         places.home + "/engine.log says why it cannot. `kill " + process +
         "` ends the engine: queued work stays, and the next command starts a new engine";
}

std::optional<std::string> engine_elsewhere(const std::string& home) {
  const auto owner = owner_of(home);
  if (!owner || owner->host == own_host() || std::time(nullptr) - owner->heartbeat >= kHeartbeatAge)
    return std::nullopt;
  return "the engine of " + home + " runs on " + owner->host + " (process " +
         std::to_string(owner->process) + "); use it there, or end it there first";
}

std::optional<std::string> engine_not_heard(const Places& places) {
  const auto elsewhere = engine_elsewhere(places.home);
  return elsewhere ? elsewhere : engine_out_of_reach(places);
}

namespace {

/// What the engine itself says of trouble that it has, which may be why it does not answer another
/// request.
std::string trouble_of_engine(const Places& places) {
  const Answer answer =
      HttpClient(sockets_of(places), -1).request("GET", "/v1/engine", {}, kTroubleTime);
  boost::system::error_code error;
  const json::value value = json::parse(answer.body, error);
  if (error || !value.is_object()) return {};
  const std::string message = text_at(value.get_object(), "message");
  return message.empty() ? "" : "; it says: " + one_line(message);
}

}  // namespace

EngineClient::EngineClient(const Places& places, int interrupt)
    : places_(places), http_(sockets_of(places), interrupt) {
  http_.when_slow(kPatience, [this](std::string_view method, const std::string& target) {
    if (is_long_poll(target)) return;
    const std::string text =
        "hpcbatch: waits for the engine (process " + std::to_string(http_.peer()) +
        "), which has not answered " + std::string(method) + " " + target + " for " +
        std::to_string(kPatience.count()) + " s" + trouble_of_engine(places_) + "\n";
    std::fputs(text.c_str(), stderr);
  });
}

json::object EngineClient::object_of(const Answer& answer) {
  if (answer.outcome == Exchange::NoEngine) {
    if (const auto text = engine_not_heard(places_)) throw CommandError(kExitNoEngine, *text);
  }
  json::object object = hpcbatch::object_of(answer);
  const json::value* trouble = object.if_contains("trouble");
  if (trouble != nullptr && trouble->is_string() && !std::exchange(told_trouble_, true)) {
    std::fprintf(stderr, "hpcbatch: %s\n", one_line(trouble->get_string()).c_str());
  }
  return object;
}

json::object EngineClient::get(const std::string& target, std::chrono::milliseconds time) {
  for (int left = kTriesOfGet;; --left) {
    const Answer answer = http_.request("GET", target, {}, time);
    const bool is_gone = answer.outcome == Exchange::Lost || answer.outcome == Exchange::NoEngine;
    if (!is_gone || left == 1 || !find_again_ || !find_again_()) return object_of(answer);
  }
}

json::object EngineClient::post(const std::string& target, const json::object& body,
                                std::chrono::milliseconds time) {
  return object_of(http_.request("POST", target, json::serialize(body), time));
}

}  // namespace hpcbatch
