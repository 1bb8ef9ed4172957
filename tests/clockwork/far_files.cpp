#include "far_files.hpp"

#include "world.hpp"

#include <algorithm>

namespace hpcbatch::clockwork {
namespace {

using namespace std::chrono_literals;

Duration takes(Draw& draw) {
  return draw.chance(80) ? draw.between(5ms, 2s) : draw.between(2s, 90s);
}

}  // namespace

void FarFiles::bring(const BringFiles& asked, const Answer& answer) {
  Draw draw = world_.draw({'f', ++asked_});
  world_.count("files brought");
  IndexSet rest = asked.indices;
  // What all have in common comes at once, else in pieces.
  while (!rest.empty()) {
    FilesBrought event{.site = asked.site, .array = asked.array, .there = {}, .failed = {}};
    IndexSet some = rest;
    if (asked.of_each) {
      some = {};
      for (std::uint64_t left = 1 + draw.below(8); left > 0 && !rest.empty(); --left)
        some.add(rest.pop_first());
    } else {
      rest = {};
    }
    const std::uint64_t how = peace_ ? 99 : draw.below(100);
    if (how < 10) {
      event.failed.push_back({some, Failure::StageInFailed, "no room just now", true});
    } else if (how < 13) {
      event.failed.push_back({some, Failure::InputMissing, "there is no such file", false});
    } else {
      event.there = some;
    }
    world_.clock.after(takes(draw), [answer, event] { answer(event); });
  }
}

AttemptsEnded FarFiles::fetch(AttemptsEnded ended,
                              const std::function<bool(const AttemptEnd&)>& is_far,
                              const Answer& answer) {
  OutputsComing coming{ended.pilot, {}};
  std::erase_if(ended.ends, [&](const AttemptEnd& end) {
    if (end.outputs_staged || end.outcome.failure != Failure::Ok || !is_far(end)) return false;
    Draw draw = world_.draw({'o', ++asked_});
    coming.attempts.push_back(end.attempt);
    world_.count("outputs fetched");
    world_.clock.after(takes(draw),
                       [answer, event = AttemptsEnded{ended.pilot, {end}}] { answer(event); });
    return true;
  });
  if (!coming.attempts.empty()) world_.clock.after(0ms, [answer, coming] { answer(coming); });
  return ended;
}

}  // namespace hpcbatch::clockwork
