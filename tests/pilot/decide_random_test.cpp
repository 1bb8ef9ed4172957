// Random events: a pilot keeps its promises whatever comes.
#include "decide_fixture.hpp"

#include <random>
#include <sstream>

namespace hpcbatch::pilot {
namespace {

class DecideRandomTest : public DecideTest {};

// Thousands of random events: nothing is started twice, room is never overdrawn, every lease ends
// once.
TEST_F(DecideRandomTest, RandomEventsKeepItsPromises) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&random](unsigned below) { return static_cast<unsigned>(random() % below); };
    now_ = Time{1h};
    Terms terms{.usable_until = {}, .margin = 5s, .idle = 30s};
    if (pick(2) == 0) terms.usable_until = now_ + 200s;
    pilot({{"cpus", 40000}, {"memory", 1000}, {"gpus/a100", 20000}}, terms, {0, 1, 2, 3});
    std::map<AttemptId, std::string> state;
    std::map<AttemptId, Placement> placed;
    std::set<AttemptId> silent;
    bool exited = false;
    unsigned next_lease = 1;
    const auto any = [&](const std::string& wanted) -> std::optional<AttemptId> {
      std::vector<AttemptId> all;
      for (const auto& [id, s] : state) {
        if (s == wanted) all.push_back(id);
      }
      if (all.empty()) return std::nullopt;
      return all[pick(static_cast<unsigned>(all.size()))];
    };
    for (int step = 0; step < 400 && !exited; ++step) {
      switch (pick(14)) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const unsigned n = next_lease++;
          Amounts granted{{"cpus", 5000 * (1 + pick(5))}, {"memory", 100 * pick(4)}};
          if (pick(4) == 0) granted.emplace_back("gpus/a100", 5000 * (1 + pick(4)));
          state[id_of(n)] = "leased";
          lease(n, granted, std::chrono::seconds{pick(3) == 0 ? 20 + pick(300) : 0});
          break;
        }
        case 4:
        case 5:
        case 6:
          if (const auto id = any("running")) {
            const bool staged = pick(3) == 0;
            ASSERT_EQ(d().ended(*id, staged, 1000, now_), !silent.contains(*id));
            placed.erase(*id);
            state[*id] = staged && !silent.contains(*id) ? "staged" : "ended";
          }
          break;
        case 7:
          if (const auto id = any("staged")) d().publish_allowed(*id);
          break;
        case 8:
          if (const auto id = any("publishing")) {
            ASSERT_EQ(d().published(*id, 1000, now_), !silent.contains(*id));
            state[*id] = "ended";
          }
          break;
        case 9:
        case 10:
          if (const auto id = any("ended")) d().acknowledged(*id, now_);
          break;
        case 11: {
          const bool quiet = pick(2) == 0;
          const AttemptId id = id_of(1 + pick(next_lease));
          if (quiet && d().state_of(id)) silent.insert(id);
          d().kill_asked(id, Failure::Cancelled, quiet, now_);
          break;
        }
        case 12:
          after(std::chrono::seconds{pick(5)});
          break;
        case 13:
          switch (pick(40)) {
            case 1:
              d().must_leave(LeaveCause::Terminated, now_);
              break;
            case 2:
              for (const auto& [id, unused] : d().held()) silent.insert(id);
              d().must_leave(LeaveCause::Fenced, now_);
              break;
            case 3:
              d().must_leave(LeaveCause::EngineEnds, now_);
              break;
            case 4:
              d().must_leave(LeaveCause::GivenUp, now_);
              break;
            case 5:
              d().link_lost();
              break;
            case 6:
              d().welcomed(now_);
              break;
            default:
              d().recalled(pick(3));
          }
          break;
      }
      std::vector<Action> actions;
      while (!(actions = d().decide(now_)).empty())
        for (const Action& action : actions) {
          ASSERT_FALSE(exited) << "something after the exit: " << to_text(action);
          if (const auto* run = std::get_if<Launch>(&action)) {
            ASSERT_EQ(state[run->id], "leased");
            state[run->id] = "running";
            for (const auto& [other, placement] : placed) {
              ASSERT_NE(placement.slot, run->placement.slot);
              for (const unsigned cpu : run->placement.cpus) {
                ASSERT_EQ(std::count(placement.cpus.begin(), placement.cpus.end(), cpu), 0);
              }
            }
            placed[run->id] = run->placement;
          } else if (const auto* back = std::get_if<Return>(&action)) {
            ASSERT_EQ(state[back->id], "leased");
            state[back->id] = "returned";
          } else if (const auto* fail = std::get_if<Fail>(&action)) {
            ASSERT_TRUE(state[fail->id] == "leased" || state[fail->id] == "discarded")
                << state[fail->id];
            state[fail->id] = "ended";
          } else if (const auto* publish = std::get_if<Publish>(&action)) {
            ASSERT_EQ(state[publish->id], "staged");
            state[publish->id] = "publishing";
          } else if (const auto* discard = std::get_if<Discard>(&action)) {
            ASSERT_TRUE(state[discard->id] == "staged" || silent.contains(discard->id));
            state[discard->id] = "discarded";
          } else if (const auto* stop = std::get_if<Stop>(&action)) {
            ASSERT_EQ(state[stop->id], "running");
          } else if (const auto* forgotten = std::get_if<Forget>(&action)) {
            ASSERT_NE(state[forgotten->id], "running");
            state[forgotten->id] = "forgotten";
          } else if (std::holds_alternative<Exit>(action)) {
            exited = true;
            for (const auto& [id, s] : state) {
              ASSERT_TRUE(s != "running" && s != "leased" && s != "staged" && s != "publishing")
                  << id.array << " was left " << s << ", seed " << seed;
            }
          }
        }
      if (!exited && d().next()) {
        ASSERT_GT(*d().next(), now_) << "it would go round without doing anything, seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace hpcbatch::pilot
