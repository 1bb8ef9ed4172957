// A connection between a pilot and the engine, with all that networks do to one.
//
// As on the real link each frame carries its number under the cipher: a frame that is lost, doubled
// or out of its place is noticed by who receives the next one, and ends the link.
#pragma once

#include "clock.hpp"
#include "draw.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace hpcbatch::clockwork {

class Link : public std::enable_shared_from_this<Link> {
 public:
  enum class End : std::uint8_t { Engine, Pilot };
  enum class Spoil : std::uint8_t { None, Lose, Double, Swap };
  struct Ears {
    std::function<void(const std::string&)> heard;
    std::function<void()> closed;  ///< once, and not after one's own `close`
  };

  Link(Clock& clock, Draw draw) : clock_(clock), draw_(draw) {}
  /// From now on each end waits for signs of life.
  void begin();
  void attach(End end, Ears ears) { side(end).ears = std::move(ears); }
  bool is_open(End end) const { return sides_[static_cast<std::size_t>(end)].open; }
  void send(End from, std::string bytes);
  /// What was sent before still arrives.
  void close(End from);
  /// The process at this end is gone: nobody hears, the other end is told by its kernel.
  void vanish(End end);

  void cut();
  void go_silent();
  void stall(Duration length);
  /// The next frame, in either direction.
  void spoil(Spoil how) { spoil_ = how; }
  /// Nothing is delivered now, or was a moment ago.
  bool is_troubled() const;

 private:
  struct Side {
    Ears ears;
    bool open{true};
    bool closing{false};  ///< no frame is taken any more
    std::uint64_t sent{0}, expected{0};
    Time last_arrival{};  ///< of what was sent to this side
    Time last_heard{};
  };
  Side& side(End end) { return sides_[static_cast<std::size_t>(end)]; }
  static End other(End end) { return end == End::Engine ? End::Pilot : End::Engine; }
  Time arrival_at(End end);
  void arrive(End end, std::uint64_t number, const std::string& bytes);
  void end_side(End end);
  void watch_silence(End end);

  Clock& clock_;
  Draw draw_;
  std::array<Side, 2> sides_;
  Time stalled_until_{};
  Spoil spoil_{Spoil::None};
  bool silent_{false};
};

}  // namespace hpcbatch::clockwork
