#include "wire/relay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch::wire {
namespace {

TEST(Spool, APieceIsReadWholeOrNotAtAll) {
  const std::string bytes("some\0bytes\n", 11);
  const std::string file = sealed_piece(7, bytes);
  EXPECT_EQ(*opened_piece(7, file), bytes);
  EXPECT_EQ(*opened_piece(1, sealed_piece(1, "")), "");
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto cut = opened_piece(7, std::string_view(file).substr(0, length));
    ASSERT_FALSE(cut) << length;
    EXPECT_EQ(cut.error().kind, Error::Kind::Transient);
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(opened_piece(7, changed)) << at;
  }
  EXPECT_FALSE(opened_piece(8, file)) << "another piece under this name";
  EXPECT_FALSE(opened_piece(7, file + "x"));
}

TEST(Spool, PiecesHaveNamesInTheirOrder) {
  EXPECT_EQ(piece_name(1), "0000000001");
  EXPECT_LT(piece_name(99), piece_name(100));
  EXPECT_EQ(piece_number(piece_name(123456789)), 123456789U);
  for (const char* name : {"", ".", "1", "000000000x", "0000000001.tmp", "closed"})
    EXPECT_EQ(piece_number(name), 0U) << name;
}

TEST(Spool, AnExchangeIsNoPieceAndNoBanner) {
  EXPECT_EQ(*opened_exchange(sealed_exchange("order")), "order");
  EXPECT_FALSE(opened_exchange("Welcome!\n" + sealed_exchange("order")));
  EXPECT_FALSE(opened_exchange(sealed_piece(0, "order")));
}

TEST(Spool, AConnectionNamesItsPilot) {
  EXPECT_EQ(spool_connection({"habc", 3}, 0xFF), "habc.3.00000000000000ff");
}

}  // namespace
}  // namespace hpcbatch::wire
