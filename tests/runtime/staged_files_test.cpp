// What is asked, sent and dropped is decided; a random site and random owners hold it to
// that.
#include "staging/staged_files.hpp"
#include "wire/file_store.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

StageOwner task(std::uint32_t index) {
  return {ArrayId{1}, index};
}

HashedFile file(char digit, std::uint64_t size, bool executable = false) {
  HashedFile made;
  made.state.size = size;
  made.state.executable = executable;
  made.hash = std::string(wire::kHashDigits, digit);
  return made;
}

std::string key(char digit, const std::string& name) {
  return wire::store_key(std::string(wire::kHashDigits, digit), name);
}

class StagedFilesTest : public testing::Test {
 protected:
  /// Failures of the owners that were decided since, "ok" for none.
  std::map<StageOwner, std::string> decided() {
    std::map<StageOwner, std::string> all;
    for (const auto& one : files_.take_decided())
      all[one.owner] = one.error ? std::string(to_string(one.error->failure)) : "ok";
    return all;
  }
  void identify(const std::string& path, const HashAnswer& answer) {
    EXPECT_EQ(files_.take_unidentified(10), std::vector<std::string>{path});
    files_.identified(path, answer, now_);
  }
  void send_all() {
    for (const auto& one : files_.take_small(1 << 20, 100)) files_.sent(one.key, now_);
  }
  using Decided = std::map<StageOwner, std::string>;

  Time now_{1000s};
  StagedFiles files_{"far", 1000};
};

TEST_F(StagedFilesTest, WhatTheSiteMayHaveIsAskedForBeforeItIsSent) {
  files_.want(task(1), {"/in/a"}, 1);
  identify("/in/a", file('a', 10));
  EXPECT_TRUE(files_.take_small(1 << 20, 10).empty());
  const auto questions = files_.take_questions(10);
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].key, key('a', "a"));
  files_.told(key('a', "a"), false, now_);
  EXPECT_EQ(decided(), Decided{});
  const auto sending = files_.take_small(1 << 20, 10);
  ASSERT_EQ(sending.size(), 1u);
  EXPECT_EQ(sending[0].path, "/in/a");
  EXPECT_FALSE(files_.key_of(task(1), "/in/a"));
  files_.sent(sending[0].key, now_);
  EXPECT_EQ(decided(), (Decided{{task(1), "ok"}}));
  EXPECT_EQ(files_.key_of(task(1), "/in/a"), key('a', "a"));
  EXPECT_EQ(files_.stored().bytes, 10u);
}

TEST_F(StagedFilesTest, OfAStoreThatIsKnownNothingIsAsked) {
  files_.list_is_complete();
  files_.want(task(1), {"/in/a"}, 1);
  identify("/in/a", file('a', 10));
  EXPECT_TRUE(files_.take_questions(10).empty());
  EXPECT_EQ(files_.take_small(1 << 20, 10).size(), 1u);
}

TEST_F(StagedFilesTest, WhoAsksWhileAFileIsReadIsToldOfALaterReading) {
  files_.list_is_complete();
  files_.want(task(1), {"/in/a"}, 1);
  EXPECT_EQ(files_.take_unidentified(10).size(), 1u);
  files_.want(task(2), {"/in/a"}, 2);
  files_.identified("/in/a", file('a', 10), now_);
  identify("/in/a", file('b', 20));
  send_all();
  EXPECT_EQ(files_.key_of(task(1), "/in/a"), key('a', "a"));
  EXPECT_EQ(files_.key_of(task(2), "/in/a"), key('b', "a"));
}

TEST_F(StagedFilesTest, OneThatWasChangedIsReadAgainAndTheSecondTimeNot) {
  files_.list_is_complete();
  files_.want(task(1), {"/in/a"}, 1);
  files_.want(task(2), {"/other/a"}, 2);
  EXPECT_EQ(files_.take_unidentified(10).size(), 2u);
  files_.identified("/in/a", file('a', 10), now_);
  files_.identified("/other/a", file('a', 10), now_);
  auto sending = files_.take_small(1 << 20, 10);
  ASSERT_EQ(sending.size(), 1u) << "one content";
  EXPECT_EQ(sending[0].path, "/in/a");
  files_.changed(sending[0]);
  sending = files_.take_small(1 << 20, 10);
  ASSERT_EQ(sending.size(), 1u);
  EXPECT_EQ(sending[0].path, "/other/a") << "who has the same still gets it";
  files_.sent(sending[0].key, now_);
  EXPECT_EQ(decided(), (Decided{{task(2), "ok"}}));
  identify("/in/a", file('b', 10));
  files_.changed(files_.take_small(1 << 20, 10).at(0));
  EXPECT_EQ(decided(), (Decided{{task(1), "input_changed"}}));
  EXPECT_TRUE(files_.take_unidentified(10).empty());
  EXPECT_EQ(files_.stored().bytes, 10u);
}

TEST_F(StagedFilesTest, WhatNobodyHoldsAnyMoreIsNotSent) {
  files_.list_is_complete();
  files_.want(task(1), {"/in/a"}, 1);
  identify("/in/a", file('a', 10));
  files_.let_go(task(1));
  EXPECT_EQ(decided(), (Decided{{task(1), "stage_in_failed"}}));
  EXPECT_TRUE(files_.take_small(1 << 20, 10).empty());
  EXPECT_EQ(files_.stored().bytes, 0u);
}

TEST_F(StagedFilesTest, WhatIsOldOrBeyondTheLimitGoesAndNothingThatIsHeld) {
  files_.listed(key('a', "old"), 100, false, now_ - 1000s);
  files_.listed(key('b', "held"), 100, false, now_ - 900s);
  files_.listed(key('c', "young"), 100, false, now_ - 10s);
  files_.list_is_complete();
  files_.want(task(1), {"/in/held"}, 1);
  identify("/in/held", file('b', 100));
  files_.drop_unused_since(now_ - 500s);
  EXPECT_EQ(files_.take_drops(), std::vector<std::string>{wire::place_of_key(key('a', "old"))});
  EXPECT_EQ(files_.stored().bytes, 200u);
  files_.told(files_.take_questions(10).at(0).key, true, now_);
  EXPECT_EQ(decided(), (Decided{{task(1), "ok"}}));
  files_.want(task(2), {"/in/big"}, 2);
  identify("/in/big", file('d', 850));
  EXPECT_EQ(files_.take_small(1 << 20, 10).size(), 1u);
  EXPECT_EQ(files_.take_drops(), std::vector<std::string>{wire::place_of_key(key('c', "young"))});
}

TEST_F(StagedFilesTest, NothingIsThrownAwayForWhatCannotFitAnyway) {
  files_.listed(key('a', "old"), 100, false, now_ - 1000s);
  files_.list_is_complete();
  files_.want(task(1), {"/in/big"}, 1);
  identify("/in/big", file('d', 1001));
  EXPECT_TRUE(files_.take_small(1 << 20, 10).empty());
  EXPECT_EQ(decided(), (Decided{{task(1), "stage_in_failed"}}));
  EXPECT_TRUE(files_.take_drops().empty());
}

TEST_F(StagedFilesTest, ADropThatWasNotDoneIsForgottenWhereTheFileIsThereAgain) {
  files_.list_is_complete();
  files_.want(task(1), {"/in/a"}, 1);
  identify("/in/a", file('a', 10));
  send_all();
  files_.not_dropped({wire::place_of_key(key('a', "a")), wire::place_of_key(key('b', "b"))});
  EXPECT_EQ(files_.take_drops(), std::vector<std::string>{wire::place_of_key(key('b', "b"))});
}

/// A site that keeps what it was sent, loses some of it, and does not always answer.
class StagedFilesWorld {
 public:
  explicit StagedFilesWorld(unsigned seed) : random_(seed), files_("far", 5000) {}

  void step() {
    now_ += 1s;
    switch (draw(12)) {
      case 0:
      case 1:
        return want();
      case 2:
        return files_.let_go(task(draw(20)));
      case 3:
      case 4:
        return identify();
      case 5:
      case 6:
        return exchange();
      case 7:
        return copy();
      case 8:
        return lose();
      case 9:
        if (draw(10) == 0) files_.keep_all(draw(2) == 0);
        return files_.drop_unused_since(now_ - 200s);
      case 10:
        content_[draw(30)] = draw(40);
        return;
      default:
        return hear();
    }
  }
  /// All that is on its way comes to its end.
  void settle() {
    files_.keep_all(false);
    is_well_ = true;
    for (int i = 0; i < 200; ++i) {
      identify();
      exchange();
      copy();
      hear();
    }
    EXPECT_TRUE(open_.empty()) << open_.size() << " were never answered";
    for (std::uint32_t i = 0; i < 20; ++i) files_.let_go(task(i));
    drop();
    for (const auto& [key, size] : there_) sizes_ += size;
    EXPECT_GE(files_.stored().bytes, sizes_) << "it knows all that it has not lost";
    EXPECT_LE(files_.stored().bytes, 5000u);
    files_.drop_unused_since(now_ + 1s);
    drop();
    EXPECT_EQ(files_.stored().bytes, 0u);
    EXPECT_EQ(files_.stored().files, 0u);
    EXPECT_TRUE(there_.empty());
  }

 private:
  std::uint32_t draw(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
  }
  bool fails() { return !is_well_ && draw(4) == 0; }
  static std::string path(std::uint32_t number) { return "/in/" + std::to_string(number % 10); }

  void want() {
    const StageOwner owner = task(draw(20));
    std::vector<std::string> paths;
    for (std::uint32_t i = draw(4); i > 0; --i) paths.push_back(path(draw(30)));
    open_.insert({++ticket_, owner});
    files_.want(owner, paths, ticket_);
  }
  void identify() {
    for (const std::string& one : files_.take_unidentified(draw(5) + 1)) {
      const std::uint32_t what = content_[static_cast<std::uint32_t>(one.back() - '0')];
      if (fails()) {
        files_.identified(one, std::nullopt, now_);
      } else if (what == 39) {
        files_.identified(one, StageError{false, Failure::InputMissing, ""}, now_);
      } else {
        HashedFile made;
        made.state.size = what == 5 ? (std::uint64_t{2} << 20) : std::uint64_t{what} * 40;
        made.state.executable = what % 3 == 0;
        made.hash = std::string(wire::kHashDigits, "0123456789abcdef"[what % 16]);
        made.hash[1] = "012"[what / 16];
        files_.identified(one, made, now_);
      }
    }
  }
  void drop() {
    for (const std::string& place : files_.take_drops()) {
      const std::string key = wire::key_of_place(place);
      EXPECT_FALSE(held().contains(key)) << key << " is held";
      there_.erase(key);
    }
  }
  std::set<std::string> held() const {
    std::set<std::string> keys;
    for (std::uint32_t i = 0; i < 20; ++i) {
      for (std::uint32_t p = 0; p < 10; ++p) {
        if (const auto key = files_.key_of(task(i), path(p))) keys.insert(*key);
      }
    }
    return keys;
  }
  void exchange() {
    const auto questions = files_.take_questions(draw(5) + 1);
    const auto sendings = files_.take_small(draw(2000), 1 + draw(4));
    if (fails()) {
      for (const auto& one : questions) files_.not_told(one.key);
      for (const auto& one : sendings) files_.not_sent(one.key);
      auto drops = files_.take_drops();
      files_.not_dropped(std::move(drops));
      return;
    }
    drop();
    for (const auto& one : questions) files_.told(one.key, there_.contains(one.key), now_);
    for (const auto& one : sendings) answer(one);
  }
  void copy() {
    if (const auto one = files_.take_large()) answer(*one);
  }
  void answer(const StagedFiles::Sending& one) {
    const auto chance = is_well_ ? 9U : draw(10);
    if (chance == 0) return files_.changed(one);
    if (chance == 1) return files_.no_room(one.key, "full");
    if (chance == 2) return files_.refused(one.key, {true, Failure::StageInFailed, ""});
    if (chance == 3) return files_.not_sent(one.key);
    there_[one.key] = one.state.size;
    files_.sent(one.key, now_);
  }
  void lose() {
    if (there_.empty() || draw(3) > 0) return;
    auto at = there_.begin();
    std::advance(at, draw(static_cast<std::uint32_t>(there_.size())));
    const std::string key = at->first;
    there_.erase(at);
    files_.missed(key);
  }
  void hear() {
    for (const auto& one : files_.take_decided())
      EXPECT_EQ(open_.erase({one.ticket, one.owner}), 1u) << "told twice";
  }

  std::mt19937 random_;
  StagedFiles files_;
  Time now_{1000s};
  bool is_well_{false};
  std::uint64_t ticket_{0};
  std::uint64_t sizes_{0};
  std::map<std::uint32_t, std::uint32_t> content_;
  std::map<std::string, std::uint64_t> there_;
  std::set<std::pair<std::uint64_t, StageOwner>> open_;
};

TEST(StagedFilesRandomTest, EveryOwnerIsAnsweredOnceAndNothingThatIsHeldIsDropped) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    StagedFilesWorld world(seed);
    for (int i = 0; i < 400; ++i) world.step();
    world.settle();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace hpcbatch
