// The link without a network: what one end puts out is handed to the other, whole, cut up, changed
// or twice.
#include "wire/encrypted_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hpcbatch::wire {
namespace {

const PilotName kPilot{"Hb1a2b3c", 3};

struct Ends {
  Key key = random_key();
  Link pilot;
  Link engine;

  explicit Ends(Key pilots_key, Versions pilot_versions = {}, Versions engine_versions = {})
      : key(pilots_key),
        pilot(Link::connecting(kPilot, key, pilot_versions)),
        engine(Link::accepting(
            [k = key](const PilotName& name) {
              return name == kPilot ? std::optional<Key>(k) : std::nullopt;
            },
            engine_versions)) {}
  Ends() : Ends(random_key()) {}

  /// Carries bytes both ways, at most `step` at once, until nothing is left; false where an end
  /// drops the link.
  bool carry(std::size_t step = SIZE_MAX) {
    while (pilot.has_output() || engine.has_output()) {
      if (!deliver(pilot.take_output(), engine, at_engine, step)) return false;
      if (!deliver(engine.take_output(), pilot, at_pilot, step)) return false;
    }
    return true;
  }

  bool deliver(const std::string& bytes, Link& to, std::vector<std::string>& messages,
               std::size_t step) {
    for (std::size_t at = 0; at < bytes.size(); at += std::min(step, bytes.size() - at)) {
      auto got = to.receive(std::string_view(bytes).substr(at, step));
      if (!got) {
        error = got.error().text;
        return false;
      }
      messages.insert(messages.end(), got->begin(), got->end());
    }
    return true;
  }

  std::vector<std::string> at_engine;
  std::vector<std::string> at_pilot;
  std::string error;
};

TEST(Link, CarriesMessagesBothWays) {
  Ends ends;
  ends.pilot.send("kept until the link stands");
  ASSERT_TRUE(ends.carry());
  EXPECT_TRUE(ends.pilot.established());
  EXPECT_TRUE(ends.engine.established());
  EXPECT_EQ(ends.engine.peer(), kPilot);
  EXPECT_EQ(ends.pilot.version(), kNewestVersion);
  EXPECT_EQ(ends.engine.version(), kNewestVersion);
  ends.engine.send("one");
  ends.engine.send("");
  ends.pilot.send("two");
  ASSERT_TRUE(ends.carry());
  EXPECT_EQ(ends.at_engine, (std::vector<std::string>{"kept until the link stands", "two"}));
  EXPECT_EQ(ends.at_pilot, (std::vector<std::string>{"one", ""}));
}

TEST(Link, WorksByteByByte) {
  Ends ends;
  ends.pilot.send("hello");
  ASSERT_TRUE(ends.carry(1));
  EXPECT_EQ(ends.at_engine, std::vector<std::string>{"hello"});
}

TEST(Link, CarriesTheLargestMessageAndGoesOnAfterNewKeys) {
  Ends ends;
  const std::string large(kLargestMessage, 'x');
  for (int i = 0; i < 5; ++i) ends.pilot.send(large);
  ends.pilot.send("after");
  ASSERT_TRUE(ends.carry(std::size_t{1} << 20));
  ASSERT_EQ(ends.at_engine.size(), 6U);
  EXPECT_EQ(ends.at_engine[4], large);
  EXPECT_EQ(ends.at_engine[5], "after");
}

TEST(Link, NothingReadableCrosses) {
  Ends ends;
  ASSERT_TRUE(ends.carry());
  ends.pilot.send("the secret of the task");
  EXPECT_EQ(ends.pilot.take_output().find("secret"), std::string::npos);
}

TEST(Link, AWrongKeyAndAnUnknownPilotGetTheSameAnswer) {
  std::vector<std::string> errors;
  std::vector<std::size_t> answered;
  for (const bool known : {true, false}) {
    Link pilot = Link::connecting(kPilot, random_key());
    Link engine = Link::accepting(
        [&](const PilotName&) { return known ? std::optional(random_key()) : std::nullopt; });
    ASSERT_TRUE(engine.receive(pilot.take_output()));
    const std::string answer = engine.take_output();
    answered.push_back(answer.size());
    ASSERT_TRUE(pilot.receive(answer));
    EXPECT_FALSE(pilot.established());
    const auto refused = engine.receive(pilot.take_output());
    ASSERT_FALSE(refused);
    errors.push_back(refused.error().text);
    EXPECT_EQ(engine.fault(), known ? LinkFault::Proof : LinkFault::UnknownPilot);
    EXPECT_FALSE(engine.established());
    EXPECT_EQ(engine.take_output(), "");
  }
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_EQ(answered[0], answered[1]);
}

TEST(Link, AnEngineWithoutTheKeyIsNotBelieved) {
  Link pilot = Link::connecting(kPilot, random_key());
  pilot.send("for the engine alone");
  ASSERT_TRUE(pilot.receive([&] {
    Link engine = Link::accepting([](const PilotName&) { return random_key(); });
    EXPECT_TRUE(engine.receive(pilot.take_output()));
    return engine.take_output();
  }()));
  pilot.take_output();
  const auto refused = pilot.receive(std::string(200, '\0'));
  EXPECT_FALSE(refused);
  EXPECT_FALSE(pilot.established());
  EXPECT_EQ(pilot.take_output(), "");
}

TEST(Link, EveryChangedByteOfTheHandshakeIsNoticed) {
  // Which end speaks at which turn: hello, answer, proof of the pilot, proof of the engine.
  for (int turn = 0; turn < 4; ++turn) {
    for (std::size_t at = 0;; ++at) {
      Ends ends;
      bool refused = false;
      bool changed = false;
      for (int i = 0; i < 4 && !refused; ++i) {
        Link& from = i % 2 == 0 ? ends.pilot : ends.engine;
        Link& to = i % 2 == 0 ? ends.engine : ends.pilot;
        std::string bytes = from.take_output();
        if (i == turn && at < bytes.size()) {
          bytes[at] = static_cast<char>(bytes[at] ^ 1);
          changed = true;
        }
        refused = !to.receive(bytes);
      }
      if (!changed) break;
      // The last bit of X25519's keys is ignored by its rule but not by the transcript.
      EXPECT_TRUE(refused) << "turn " << turn << ", byte " << at;
    }
  }
}

TEST(Link, AChangedRepeatedOrMissingFrameIsNoticed) {
  const auto frames = [](Ends& ends) {
    EXPECT_TRUE(ends.carry());
    std::vector<std::string> out;
    for (const char* text : {"first", "second", "third"}) {
      ends.pilot.send(text);
      out.push_back(ends.pilot.take_output());
    }
    return out;
  };
  {
    Ends ends;
    const auto f = frames(ends);
    for (std::size_t at = 0; at < f[0].size(); ++at) {
      Ends other;
      auto g = frames(other);
      g[0][at] = static_cast<char>(g[0][at] ^ 0x40);
      // A length that grew waits for bytes that never come; all else is refused at once.
      const auto got = other.engine.receive(g[0]);
      EXPECT_TRUE(!got || got->empty()) << at;
    }
  }
  {
    Ends ends;
    const auto f = frames(ends);
    EXPECT_TRUE(ends.engine.receive(f[0]));
    EXPECT_FALSE(ends.engine.receive(f[0]));
    EXPECT_FALSE(ends.engine.receive(f[1])) << "a broken link stays broken";
    EXPECT_EQ(ends.engine.fault(), LinkFault::Frame);
  }
  {
    Ends ends;
    const auto f = frames(ends);
    EXPECT_FALSE(ends.engine.receive(f[1]));
  }
  {
    Ends ends;
    const auto f = frames(ends);
    EXPECT_FALSE(ends.pilot.receive(f[0])) << "sent back to where it came from";
  }
}

TEST(Link, AWholeConversationCannotBeReplayed) {
  Ends ends;
  const std::string hello = ends.pilot.take_output();
  ASSERT_TRUE(ends.engine.receive(hello));
  ASSERT_TRUE(ends.pilot.receive(ends.engine.take_output()));
  const std::string proof = ends.pilot.take_output();
  ASSERT_TRUE(ends.engine.receive(proof));
  ASSERT_TRUE(ends.engine.established());

  Link again = Link::accepting([&](const PilotName&) { return ends.key; });
  ASSERT_TRUE(again.receive(hello));
  EXPECT_FALSE(again.receive(proof));
  EXPECT_EQ(again.fault(), LinkFault::Proof);
}

TEST(Link, DifferentVersionsAreNamedAtBothEnds) {
  Ends ends(random_key(), {1, 2}, {4, 5});
  auto at_engine = ends.engine.receive(ends.pilot.take_output());
  ASSERT_FALSE(at_engine);
  EXPECT_NE(at_engine.error().text.find(
                "speaks versions 1 to 2 of the wire, this engine versions 4 to 5"),
            std::string::npos)
      << at_engine.error().text;
  auto at_pilot = ends.pilot.receive(ends.engine.take_output());
  ASSERT_FALSE(at_pilot);
  EXPECT_NE(at_pilot.error().text.find(
                "the engine speaks versions 4 to 5 of the wire, this pilot versions 1 to 2"),
            std::string::npos)
      << at_pilot.error().text;
}

TEST(Link, TheNewestCommonVersionIsSpoken) {
  Ends ends(random_key(), {1, 3}, {2, 5});
  ASSERT_TRUE(ends.carry());
  EXPECT_EQ(ends.pilot.version(), 3);
  EXPECT_EQ(ends.engine.version(), 3);
}

TEST(Link, AFrameBeyondTheCapIsRefusedBeforeItIsThere) {
  Ends ends;
  ASSERT_TRUE(ends.carry());
  EXPECT_FALSE(ends.engine.fault());
  EXPECT_FALSE(ends.engine.receive(std::string_view("\xFF\xFF\xFF\x7F", 4)));
  EXPECT_EQ(ends.engine.fault(), LinkFault::Length);
}

TEST(Link, TheLengthOfAFirstFrameIsEnoughToRefuseIt) {
  Ends ends;
  ASSERT_TRUE(ends.engine.receive(ends.pilot.take_output()));
  EXPECT_FALSE(ends.engine.receive(std::string(24, 'h') + "\xFF\xFF\xFF\xFF"));
  EXPECT_EQ(ends.engine.fault(), LinkFault::Length);
}

TEST(Link, WhatBeginsAsNoHelloIsRefusedAtOnce) {
  Ends ends;
  EXPECT_TRUE(ends.engine.receive("hpc"));
  EXPECT_FALSE(ends.engine.receive("x"));
  EXPECT_EQ(ends.engine.fault(), LinkFault::Hello);
}

TEST(Link, RandomBytesAreRefusedQuietly) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    Ends ends;
    if (round % 2 == 1) {
      ASSERT_TRUE(ends.carry());
    }
    std::string bytes(random() % 400, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (round % 4 == 0) bytes.insert(0, "hpcbatch");
    for (Link* end : {&ends.engine, &ends.pilot}) {
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t step = 1 + random() % 100;
        const auto got = end->receive(std::string_view(bytes).substr(at, step));
        if (!got) break;
        EXPECT_TRUE(got->empty());
        at += step;
      }
    }
  }
}

TEST(Key, EachRankHasItsOwn) {
  const Key allocation = random_key();
  EXPECT_EQ(pilot_key(allocation, 1), pilot_key(allocation, 1));
  EXPECT_NE(pilot_key(allocation, 0), pilot_key(allocation, 1));
  EXPECT_NE(pilot_key(allocation, 0), allocation);
  EXPECT_EQ(key_from_hex(to_hex(allocation)), allocation);
  EXPECT_FALSE(key_from_hex("abc"));
  EXPECT_FALSE(key_from_hex(std::string(64, 'g')));
}

}  // namespace
}  // namespace hpcbatch::wire
