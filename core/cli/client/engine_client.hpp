// The engine as the verbs see it: JSON in, JSON out, and every failure already a sentence with its
// exit code.
#pragma once

#include "cli/client/http_client.hpp"
#include "cli/process/interrupt.hpp"
#include "documents/state_paths.hpp"
#include "model/owner.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace hpcbatch {

/// Where an engine of these places may listen, best first.  The state directory always counts: an
/// engine that was started where XDG_RUNTIME_DIR is not set listens there.
std::vector<std::string> sockets_of(const Places& places);

/// One thread.  All calls throw CommandError (exit code 2 where the engine refuses, 3 where it
/// cannot be reached) and InterruptedByUser.
class EngineClient {
 public:
  /// Says on standard error of a request what is waited for where that takes longer than
  /// `kPatience`; not of those that are made to wait.
  EngineClient(const Places& places, int interrupt);

  boost::json::object get(const std::string& target, std::chrono::milliseconds time = kAnswerTime);
  boost::json::object post(const std::string& target, const boost::json::object& body,
                           std::chrono::milliseconds time = kAnswerTime);
  /// The JSON of a successful answer; throws for every other one.  What the engine says of trouble
  /// that its answer comes with goes to standard error, once.
  boost::json::object object_of(const Answer& answer);
  /// What finds an engine again that is gone before it has answered a `get`: whether to ask again.
  void when_lost(std::function<bool()> find_again) { find_again_ = std::move(find_again); }
  /// Whoever shows trouble himself.
  void leave_trouble_out() { told_trouble_ = true; }
  /// For what a verb wants to look at itself.
  HttpClient& http() { return http_; }

  static constexpr std::chrono::milliseconds kAnswerTime{30'000};
  static constexpr std::chrono::seconds kPatience{10};

 private:
  Places places_;
  HttpClient http_;
  std::function<bool()> find_again_;
  bool told_trouble_{false};
};

/// As `EngineClient::object_of`, where it is known that an engine runs or may be started here.
boost::json::object object_of(const Answer& answer);

/// How the engine of this state directory ran that died without a word on this host, and was not
/// started again since.
std::optional<Owner> engine_that_died(const std::string& home);

/// Where an engine lives on this host that nobody listens for: a sentence that says so, and what to
/// do.  It has lost its socket, which it makes again within seconds, or it begins or ends just now.
std::optional<std::string> engine_out_of_reach(const Places& places);

/// Where an engine on another host uses this state directory: a sentence that says so.
std::optional<std::string> engine_elsewhere(const std::string& home);

/// Either of the two.
std::optional<std::string> engine_not_heard(const Places& places);

/// What every verb is given: where things lie, and how the user interrupts.
struct Session {
  Places places;
  Interrupt& interrupt;

  EngineClient client() const { return EngineClient(places, interrupt.descriptor()); }
};

}  // namespace hpcbatch
