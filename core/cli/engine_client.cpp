#include "cli/engine_client.hpp"

#include "cli/exit.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// From here on it is the engine that failed, not the request.
constexpr int kFirstServerError = 500;

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

json::object EngineClient::get(const std::string& target) {
  return object_of(http_.request("GET", target, {}, kAnswerTime));
}

json::object EngineClient::post(const std::string& target, const json::object& body,
                                std::chrono::milliseconds time) {
  return object_of(http_.request("POST", target, json::serialize(body), time));
}

}  // namespace hpcbatch
