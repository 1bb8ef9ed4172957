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

void FarFiles::bring(const StageIn& asked, const Answer& answer) {
  Draw draw = world_.draw({'f', ++asked_});
  world_.count("files staged in");
  IndexSet rest = asked.indices;
  // What all have in common comes at once, else in pieces.
  while (!rest.empty()) {
    StagedIn event{.site = asked.site, .array = asked.array, .there = {}, .failed = {}};
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

std::vector<AttemptId> FarFiles::fetch(std::vector<AttemptEnd>& ends, const PilotOf& far,
                                       const Answer& answer) {
  std::vector<AttemptId> coming;
  std::erase_if(ends, [&](const AttemptEnd& end) {
    if (end.outputs_staged || end.outcome.failure != Failure::Ok) return false;
    const auto pilot = far(end);
    if (!pilot) return false;
    Draw draw = world_.draw({'o', ++asked_});
    coming.push_back(end.attempt);
    world_.count("outputs fetched");
    fetched_[end.attempt] = *pilot;
    world_.clock.after(takes(draw), [this, answer, event = AttemptsEnded{*pilot, {end}}] {
      fetched_.erase(event.ends.front().attempt);
      answer(event);
    });
    return true;
  });
  return coming;
}

void FarFiles::stop(const AttemptId& attempt, const Answer& answer) {
  const auto node = fetched_.extract(attempt);
  if (node.empty()) return;
  world_.count("fetches stopped");
  AttemptEnd end{attempt, {}};
  end.outcome.failure = Failure::Cancelled;
  end.outcome.ended = world_.clock.now();
  world_.clock.after(0ms, [answer, event = AttemptsEnded{node.mapped(), {end}}] { answer(event); });
}

}  // namespace hpcbatch::clockwork
