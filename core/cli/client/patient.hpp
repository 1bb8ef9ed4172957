// Questions to an engine that may go away and come back meanwhile.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/client/engine_revival.hpp"
#include "cli/show/terminal.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace hpcbatch {

class PatientClient {
 public:
  PatientClient(EngineClient& client, const Session& session, StatusLine& status)
      : client_(client),
        session_(session),
        status_(status),
        away_(EngineAbsence::Clock::now()),
        revival_(session, status) {}

  /// From then on nothing is waited for.
  void give_up_at(EngineAbsence::Clock::time_point time) { give_up_ = time; }

  /// Asks again for as long as an engine is waited for, and starts one that has died; each question
  /// is one that may be asked twice.  Throws as EngineClient does.
  boost::json::object get(const std::string& target,
                          std::chrono::milliseconds time = EngineClient::kAnswerTime);
  boost::json::object post(const std::string& target, const std::string& body,
                           std::chrono::milliseconds time = EngineClient::kAnswerTime);

 private:
  boost::json::object ask(const char* method, const std::string& target, const std::string& body,
                          std::chrono::milliseconds time);

  EngineClient& client_;
  const Session& session_;
  StatusLine& status_;
  EngineAbsence away_;
  EngineRevival revival_;
  std::optional<EngineAbsence::Clock::time_point> give_up_;
};

}  // namespace hpcbatch
