// An engine that dies under a verb that waits for it: there may be nobody else who starts it again.
#pragma once

#include "cli/client/session.hpp"
#include "cli/show/status_line.hpp"

#include <chrono>
#include <optional>

namespace hpcbatch {

class EngineRevival {
 public:
  using Clock = std::chrono::steady_clock;
  /// Whoever watches over it (systemd.service(5), Restart=) has started it again by then.
  static constexpr std::chrono::seconds kOthers{3};
  static constexpr std::chrono::seconds kLongestPause{60};

  EngineRevival(const Session& session, StatusLine& status) : session_(session), status_(status) {}

  /// `answer` is that of a try to connect.  Starts an engine where the last one died (one that was
  /// stopped stays stopped), as that one ran, where none has come for some seconds; says so on
  /// standard error, or once why it cannot.  Throws InterruptedByUser.
  void tried(EngineClient& client, const Answer& answer);

 private:
  void start(EngineClient& client);

  const Session& session_;
  StatusLine& status_;
  std::optional<Clock::time_point> dead_since_;
  Clock::time_point next_{};
  std::chrono::seconds pause_{5};
  bool told_{false};
};

}  // namespace hpcbatch
