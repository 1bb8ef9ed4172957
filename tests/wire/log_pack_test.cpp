// The pack of captured output: written, walked back, scanned, damaged.
#include "wire/log_pack.hpp"
#include "wire/checksum.hpp"
#include "wire/wire.pb.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hpcbatch::wire {
namespace {

Attempt attempt(std::uint64_t array, std::uint32_t index = 0) {
  Attempt a;
  a.set_array(array);
  a.set_index(index);
  a.set_number(1);
  a.set_epoch(0x500000007);
  return a;
}

/// A pack in memory that keeps the places as a pilot does.
struct Pack {
  std::string bytes;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>>
      streams;  // last, size

  void write(const Attempt& a, std::uint32_t stream, std::string_view text) {
    auto& [last, size] = streams[{a.array(), stream}];
    LogRecord record{a.array(), a.index(), a.number(), a.epoch(), stream, 0, size, last};
    last = bytes.size() + 1;
    size += text.size();
    append_log_record(bytes, record, text);
  }
  std::uint64_t last(const Attempt& a, std::uint32_t stream) {
    return streams[{a.array(), stream}].first;
  }
  ReadAt read() {
    return [this](std::uint64_t offset, std::size_t length) -> hpcbatch::Result<std::string> {
      return offset >= bytes.size() ? std::string() : bytes.substr(offset, length);
    };
  }
};

TEST(LogPack, TheChecksumIsZlibs) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926U);
  EXPECT_EQ(crc32("6789", crc32("12345")), 0xCBF43926U);
  EXPECT_EQ(crc32(std::string(1000, 'a')),
            crc32(std::string(993, 'a'), crc32(std::string(7, 'a'))));
}

TEST(LogPack, StreamsOfManyTasksComeApartAgain) {
  Pack pack;
  const Attempt one = attempt(1);
  const Attempt two = attempt(2, 9);
  pack.write(one, 1, "one ");
  pack.write(two, 1, "two ");
  pack.write(one, 2, "error of one");
  pack.write(one, 1, std::string("a\0b", 3));
  pack.write(two, 1, "more of two");
  EXPECT_EQ(*read_log(pack.read(), one, 1, pack.last(one, 1), 0, 100), std::string("one a\0b", 7));
  EXPECT_EQ(*read_log(pack.read(), one, 2, pack.last(one, 2), 0, 100), "error of one");
  EXPECT_EQ(*read_log(pack.read(), two, 1, pack.last(two, 1), 0, 100), "two more of two");
  EXPECT_EQ(*read_log(pack.read(), two, 1, pack.last(two, 1), 6, 4), "re o");
  EXPECT_EQ(*read_log(pack.read(), two, 2, 0, 0, 100), "");
  EXPECT_EQ(*read_log(pack.read(), two, 1, pack.last(two, 1), 15, 100), "");
}

TEST(LogPack, OnlyThePiecesBehindAnOffsetAreLookedFor) {
  Pack pack;
  const Attempt one = attempt(1);
  for (int i = 0; i < 100; ++i) pack.write(one, 1, "0123456789");
  int reads = 0;
  const ReadAt read = [&](std::uint64_t offset, std::size_t length) {
    ++reads;
    return pack.read()(offset, length);
  };
  EXPECT_EQ(*read_log(read, one, 1, pack.last(one, 1), 985, 100), "567890123456789");
  EXPECT_LE(reads, 5);
}

TEST(LogPack, AnotherTasksPlaceIsRefused) {
  Pack pack;
  pack.write(attempt(1), 1, "secret");
  EXPECT_FALSE(read_log(pack.read(), attempt(2), 1, 1, 0, 100));
  EXPECT_FALSE(read_log(pack.read(), attempt(1), 2, 1, 0, 100));
  EXPECT_FALSE(read_log(pack.read(), attempt(1), 1, 2, 0, 100));
  EXPECT_FALSE(read_log(pack.read(), attempt(1), 1, 100000, 0, 100));
}

TEST(LogPack, DamageIsNotReadAsOutput) {
  Pack pack;
  pack.write(attempt(1), 1, std::string(200000, 'x'));
  pack.write(attempt(2), 1, "found");
  pack.write(attempt(3), 1, "found too");
  pack.bytes[100] = 'y';
  EXPECT_FALSE(read_log(pack.read(), attempt(1), 1, pack.last(attempt(1), 1), 0, 10));
}

TEST(LogPack, NoDamageMakesAReaderGoRoundOrCrash) {
  std::mt19937_64 random(3);
  Pack pack;
  const Attempt one = attempt(1);
  for (int i = 0; i < 20; ++i) pack.write(one, 1, "0123456789");
  for (int round = 0; round < 3000; ++round) {
    Pack other = pack;
    for (int i = 0; i < 3; ++i)
      other.bytes[random() % other.bytes.size()] = static_cast<char>(random());
    const auto text = read_log(other.read(), one, 1, pack.last(one, 1), 0, 1000);
    if (text) {
      EXPECT_LE(text->size(), 200U);
    }
  }
}

TEST(LogPack, FilesAreNamedAfterThePilot) {
  EXPECT_EQ(log_file_name({"Hb1", 2}, 0xABC), "logs/Hb1.2.0000000000000abc.log");
}

}  // namespace
}  // namespace hpcbatch::wire
