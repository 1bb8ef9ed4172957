// An engine that dies under a verb that waits for it: there may be nobody else who starts it again.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/show/terminal.hpp"

#include <chrono>
#include <optional>

namespace hpcbatch {

/// How long a verb that waits goes on while the engine is away: one that is restarted, or that dies
/// and is started again and again, is waited for.
class EngineAbsence {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPatience{10};
  /// A restart is shorter, and nobody need hear of it.
  static constexpr std::chrono::seconds kQuiet{5};

  explicit EngineAbsence(Clock::time_point now) : seen_(now) {}

  /// It answered, or took a connection.
  void seen(Clock::time_point now) {
    seen_ = now;
    told_ = false;
  }
  bool is_too_long(Clock::time_point now) const { return now - seen_ >= kPatience; }
  /// True once for each time that it is away.
  bool is_to_be_told(Clock::time_point now) {
    if (told_ || now - seen_ < kQuiet) return false;
    return told_ = true;
  }

 private:
  Clock::time_point seen_;
  bool told_{false};
};

/// What is said then, on the standard error.
constexpr const char* kAwayText =
    "hpcbatch: the engine is away; it is waited for, ten minutes at most\n";
/// An engine that has too much to do says so with this status, and may do it later.
constexpr int kBusyStatus = 503;

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
