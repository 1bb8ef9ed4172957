// Results left behind: written, read by the engine, damaged; and the bytes, which are frozen.
#include "wire/outbox.hpp"
#include "wire/wire.pb.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

namespace hpcbatch::wire {
namespace {

Outbox example_outbox() {
  Result result;
  result.mutable_attempt()->set_array(12);
  result.set_failure("ok");
  return {{"Hb1", 2}, 0x0102030405060708, {result.SerializeAsString(), ""}};
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

TEST(Outbox, ComesBackAsItWas) {
  const auto back = decode_outbox(encode(example_outbox()));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(back->pilot, (PilotName{"Hb1", 2}));
  EXPECT_EQ(back->incarnation, example_outbox().incarnation);
  ASSERT_EQ(back->results, example_outbox().results);
  Result result;
  ASSERT_TRUE(result.ParseFromString(back->results[0]));
  EXPECT_EQ(result.attempt().array(), 12U);
}

TEST(Outbox, ItsLayoutIsFrozen) {
  EXPECT_EQ(hex(encode(example_outbox())).substr(0, 2 * (18 + 4 + 4 + 8 + 4)),
            std::string("6870636261746368206f7574626f7820310a") + "03486231" + "02000000" +
                "0807060504030201" + "02000000")
      << "an engine must be able to read the outbox of any older pilot";
}

TEST(Outbox, AnyDamageIsNoticed) {
  const std::string bytes = encode(example_outbox());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 4);
    EXPECT_FALSE(decode_outbox(other)) << at;
    EXPECT_FALSE(decode_outbox(bytes.substr(0, at))) << at;
  }
}

TEST(Outbox, LiesInAFileForItsOwnerAlone) {
  char place[] = "/tmp/hpcbatch-outbox-XXXXXX";
  ASSERT_NE(::mkdtemp(place), nullptr);
  const std::string path = std::string(place) + "/box";
  EXPECT_EQ(read_outbox(path).error().kind, Error::Kind::Transient);
  ASSERT_TRUE(write_outbox(path, example_outbox()));
  ASSERT_TRUE(write_outbox(path, example_outbox()));
  EXPECT_EQ(read_outbox(path)->results, example_outbox().results);
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place), {}), 1)
      << "nothing is left beside it";
  std::filesystem::remove_all(place);
}

TEST(Outbox, HasAName) {
  EXPECT_EQ(outbox_name({"Hb1", 2}), "outbox/Hb1.2");
}

}  // namespace
}  // namespace hpcbatch::wire
