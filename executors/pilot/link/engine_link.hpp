// The link to the engine: tries its addresses until one answers, keeps trying while none does,
// gathers what is to be sent.
//
//   down --(its time has come)--> connecting --> proving --> up
//   connecting, proving --(5 s, refusal)--> the next address, or down
//   up --(closed, a wrong frame, 30 s of silence)--> down
#pragma once

#include "pilot/base/loop.hpp"
#include "pilot/link/spool_carrier.hpp"
#include "pilot/link/ways_to_engine.hpp"
#include "pilot/policy/decide.hpp"
#include "posix/files.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/pilot_file.hpp"
#include "wire/wire.pb.h"

#include <functional>
#include <optional>
#include <string>

namespace hpcbatch::pilot {

class EngineLink {
 public:
  struct Callbacks {
    std::function<void(const std::string& address)> up;
    std::function<void()> down;
    std::function<void(wire::ToPilot&)> message;
    /// Something is about to be sent: what else is there?
    std::function<void(wire::ToEngine&)> gather;
    /// The pilot file is gone: the engine wants no more of this pilot.  The link is not tried
    /// again.
    std::function<void()> given_up;
  };

  /// `path` is read again before each try: the engine may have moved.
  EngineLink(Loop& loop, std::string path, wire::PilotFile file, std::uint32_t rank,
             Callbacks callbacks, Time now);
  ~EngineLink();
  EngineLink(const EngineLink&) = delete;
  EngineLink& operator=(const EngineLink&) = delete;

  bool is_up() const { return state_ == State::Up; }
  /// To be filled; only while the link is up.
  wire::ToEngine& outgoing() { return outgoing_; }
  /// Something was put there.  What nobody waits for may wait 20 ms for company.
  void added(bool urgent, Time now);
  /// Without waiting for the end of the round: for what would be too large for one frame.
  void send_now(Time now) { send_gathered(now); }
  /// Bytes that the other end has not taken yet.
  std::size_t backlog() const { return unsent_.size(); }

  /// At the end of each round of the loop: sends what is due, tries what is due.
  void tick(Time now);
  std::optional<Time> next() const;
  /// Before the end: what was sent is given up to a second to leave.
  void finish();

 private:
  enum class State { Down, Connecting, Proving, Up, GivenUp };

  void try_again(Time now);
  void try_address(Time now);
  void failed(const std::string& why, Time now);
  void ready(std::uint32_t events);
  void connected();
  void receive();
  void send_gathered(Time now);
  void write();
  void drop(const std::string& why, Time now);
  /// For so long nothing may be heard of an engine that is there.
  Duration silence() const;
  Duration heartbeat_every() const;
  void hang_up();

  Loop& loop_;
  wire::PilotName name_;
  WaysToEngine ways_;
  Callbacks callbacks_;

  State state_{State::Down};
  std::optional<Time> try_at_;
  std::optional<Time> deadline_;
  std::string last_failure_;
  std::optional<SpoolCarrier> carrier_;
  Fd socket_;
  bool wants_to_write_{false};
  std::optional<wire::Link> link_;
  std::string unsent_;
  wire::ToEngine outgoing_;
  bool any_outgoing_{false};
  bool urgent_{false};
  std::optional<Time> company_until_;
  Time last_sent_;
  Time last_heard_;
  std::uint64_t heartbeat_{0};
};

}  // namespace hpcbatch::pilot
