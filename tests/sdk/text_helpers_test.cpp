// What readers of other programs' texts have in common.
#include <gtest/gtest.h>
#include <hpcbatch/text.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {
namespace {

TEST(Text, NumbersAreWhole) {
  EXPECT_EQ(number_in<int>("-12"), -12);
  EXPECT_EQ(number_in<double>("0.5"), 0.5);
  EXPECT_EQ(number_in<unsigned>("0777", 8), 0777U);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "300"})
    EXPECT_FALSE(number_in<std::uint8_t>(text)) << text;
}

TEST(Text, LettersOfAsciiAloneHaveCases) {
  EXPECT_EQ(lower_case("MiB \xc3\x84"), "mib \xc3\x84");
  EXPECT_EQ(upper_case("MiB \xc3\xa4"), "MIB \xc3\xa4");
}

TEST(Text, BlanksGo) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed("\ta ", " "), "\ta");
}

TEST(Text, PartsStandBetween) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(lines_of("a\n\nb\n"), (Parts{"a", "", "b"}));
  EXPECT_EQ(lines_of("a"), Parts{"a"});
  EXPECT_EQ(lines_of(""), Parts{});
  EXPECT_EQ(parts_of("a,,b", ','), (Parts{"a", "", "b"}));
}

TEST(Text, PartsAreJoined) {
  EXPECT_EQ(joined(std::vector<std::string>{"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(joined(std::vector<std::string>{}, ", "), "");
  const std::map<std::string, int> counts{{"a", 1}, {"b", 2}};
  EXPECT_EQ(joined(counts, ";", [](const auto& one) { return one.first; }), "a;b");
}

}  // namespace
}  // namespace hpcbatch
