// What a pilot decides, in its own words: events happen, actions are expected, and what is not
// expected fails.
#pragma once

#include "pilot/policy/decide.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

using namespace std::chrono_literals;

AttemptId id_of(unsigned n);
std::string to_text(const Action& action);

/// One node of memory, a core for each.
inline Topology flat(const std::vector<unsigned>& numbers) {
  Topology all;
  for (const unsigned number : numbers) all.push_back({number, 0, number});
  return all;
}

class DecideTest : public testing::Test {
 protected:
  void pilot(Amounts capacity, Terms terms = {}, std::vector<unsigned> cpus = {}) {
    decide_.emplace(Room(capacity, flat(cpus)), terms, now_);
    decide_->welcomed(now_);
  }
  void two_cpus() { pilot({{"cpus", 20000}}); }
  void lease(unsigned n, Amounts granted = {{"cpus", 10000}}, Duration limit = {}) {
    decide_->leased({id_of(n), std::move(granted), limit});
  }
  bool ended(unsigned n, bool staged = false) {
    return decide_->ended(id_of(n), staged, 100, now_);
  }
  void after(Duration time) { now_ += time; }
  void expect(const std::string& expected) {
    std::string text;
    for (const Action& action : decide_->decide(now_))
      text += (text.empty() ? "" : "; ") + to_text(action);
    EXPECT_EQ(text, expected);
  }
  Decide& d() { return *decide_; }
  /// The same, where the order is nobody's business.
  void expect_in_any_order(const std::multiset<std::string>& expected) {
    std::multiset<std::string> texts;
    for (const Action& action : decide_->decide(now_)) texts.insert(to_text(action));
    EXPECT_EQ(texts, expected);
  }
  /// Nothing happens until the pilot itself wants to be asked, and that is then.
  void wakes_after(Duration time) {
    ASSERT_TRUE(d().next());
    EXPECT_EQ(*d().next() - now_, time);
    now_ = *d().next();
  }

  /// One of its tasks was running when it was told to end, without a link.
  void writes_down_what_it_ran() {
    pilot({{"cpus", 10000}});
    lease(1);
    expect("run 1");
    d().link_lost();
    d().must_leave(LeaveCause::Terminated, now_);
    expect("leaving terminated; term 1 pilot_killed");
    ended(1);
    expect("outbox");
  }

  Time now_{1h};
  std::optional<Decide> decide_;
};

}  // namespace hpcbatch::pilot
