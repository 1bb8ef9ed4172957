#include "cli/client/patient.hpp"

#include <cstdio>

namespace hpcbatch {
namespace {

constexpr std::chrono::milliseconds kTryEvery{200};

bool has_no_answer(const Answer& answer) {
  switch (answer.outcome) {
    case Exchange::NoEngine:
    case Exchange::Lost:
    case Exchange::TimedOut:
      return true;
    case Exchange::Answered:
      return answer.status == kBusyStatus;
    case Exchange::Interrupted:
    case Exchange::Refused:
      break;
  }
  return false;
}

}  // namespace

boost::json::object PatientClient::ask(const char* method, const std::string& target,
                                       const std::string& body, std::chrono::milliseconds time) {
  for (;;) {
    const Answer answer = client_.http().request(method, target, body, time);
    const auto now = EngineAbsence::Clock::now();
    const bool is_over = give_up_ && now >= *give_up_;
    if (!has_no_answer(answer) || is_over || away_.is_too_long(now)) {
      away_.seen(now);
      return client_.object_of(answer);
    }
    status_.show("the engine is away; trying again");
    if (!status_.is_visible() && away_.is_to_be_told(now)) std::fputs(kAwayText, stderr);
    session_.interrupt.pause(kTryEvery);
    const Answer tried = client_.http().connect();
    if (tried.outcome == Exchange::Answered) away_.seen(EngineAbsence::Clock::now());
    revival_.tried(client_, tried);
  }
}

boost::json::object PatientClient::get(const std::string& target, std::chrono::milliseconds time) {
  return ask("GET", target, {}, time);
}

boost::json::object PatientClient::post(const std::string& target, const std::string& body,
                                        std::chrono::milliseconds time) {
  return ask("POST", target, body, time);
}

}  // namespace hpcbatch
