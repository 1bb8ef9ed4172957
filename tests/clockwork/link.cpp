#include "link.hpp"

#include <utility>

namespace hpcbatch::clockwork {
namespace {

using namespace std::chrono_literals;

// How long the two programs wait for a sign of life (link_server.cpp, engine_link.cpp).
constexpr Duration kEngineWaits = 40s;
constexpr Duration kPilotWaits = 30s;

}  // namespace

Time Link::arrival_at(End end) {
  Side& to = side(end);
  const Duration latency = draw_.chance(95) ? draw_.between(100us, 3ms) : draw_.between(3ms, 200ms);
  const Time at = std::max({clock_.now() + latency, to.last_arrival, stalled_until_});
  to.last_arrival = at;
  return at;
}

void Link::send(End from, std::string bytes) {
  if (!side(from).open || side(from).closing) return;
  const End end = other(from);
  std::uint64_t number = side(from).sent++;
  if (silent_) return;
  const auto deliver = [this, end](std::uint64_t n, std::string text) {
    clock_.at(arrival_at(end), [self = shared_from_this(), end, n, text = std::move(text)] {
      self->arrive(end, n, text);
    });
  };
  switch (std::exchange(spoil_, Spoil::None)) {
    case Spoil::None:
      break;
    case Spoil::Lose:
      return;
    case Spoil::Double:
      deliver(number, bytes);
      break;
    case Spoil::Swap:
      // As the receiver sees it: this one comes where the next was to come.
      ++number;
      break;
  }
  deliver(number, std::move(bytes));
}

void Link::arrive(End end, std::uint64_t number, const std::string& bytes) {
  Side& to = side(end);
  if (!to.open || silent_) return;
  if (number != to.expected) {
    end_side(end);
    clock_.at(arrival_at(other(end)),
              [self = shared_from_this(), end] { self->end_side(other(end)); });
    return;
  }
  ++to.expected;
  to.last_heard = clock_.now();
  // A copy: what hears it may close this side.
  if (const auto heard = to.ears.heard) heard(bytes);
}

void Link::end_side(End end) {
  Side& at = side(end);
  if (!std::exchange(at.open, false) || at.closing) return;
  // Who listens holds this link: nothing comes any more, so it lets go.
  const Ears ears = std::exchange(at.ears, {});
  if (ears.closed) ears.closed();
}

void Link::close(End from) {
  if (!side(from).open || std::exchange(side(from).closing, true)) return;
  if (!silent_) {
    clock_.at(arrival_at(other(from)),
              [self = shared_from_this(), from] { self->end_side(other(from)); });
  }
  side(from).open = false;
  side(from).ears = {};
}

void Link::vanish(End end) {
  close(end);
}

void Link::cut() {
  for (const End end : {End::Engine, End::Pilot}) {
    clock_.after(draw_.between(0us, 20ms),
                 [self = shared_from_this(), end] { self->end_side(end); });
  }
}

void Link::begin() {
  for (const End end : {End::Engine, End::Pilot}) {
    side(end).last_heard = clock_.now();
    watch_silence(end);
  }
}

void Link::watch_silence(End end) {
  const Duration limit = end == End::Engine ? kEngineWaits : kPilotWaits;
  clock_.at(side(end).last_heard + limit, [self = shared_from_this(), end, limit] {
    if (!self->is_open(end)) return;
    if (self->clock_.now() - self->side(end).last_heard < limit) return self->watch_silence(end);
    self->end_side(end);
    // The other end's kernel tells it, where anything gets through.
    if (!self->silent_)
      self->clock_.at(self->arrival_at(other(end)), [self, end] { self->end_side(other(end)); });
  });
}

void Link::go_silent() {
  silent_ = true;
}

bool Link::is_troubled() const {
  constexpr Duration kMoment = 5s;
  return silent_ || clock_.now() < stalled_until_ + kMoment;
}

void Link::stall(Duration length) {
  stalled_until_ = std::max(stalled_until_, clock_.now() + length);
}

}  // namespace hpcbatch::clockwork
