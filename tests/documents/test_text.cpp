// Which bytes pass, which are made harmless, and what a misspelt word was meant to be.
#include "documents/texts.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Text, KnowsValidUtf8) {
  EXPECT_FALSE(find_invalid_utf8("plain é € 😀"));
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2U);
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0U) << "overlong";
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0U) << "surrogate";
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U) << "beyond the last code point";
  EXPECT_EQ(find_invalid_utf8("x\xe2\x82"), 1U) << "cut off";
}

TEST(Text, MakesAnythingPrintable) {
  EXPECT_EQ(make_printable("a\xff\x1b[1m\tb\n"), "a\xEF\xBF\xBD\xE2\x90\x9B[1m\tb\n");
  EXPECT_EQ(make_printable(std::string("\0", 1)), "\xE2\x90\x80");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string printable = make_printable(all + all);
  EXPECT_FALSE(find_invalid_utf8(printable));
  EXPECT_FALSE(find_control_byte(printable));
}

TEST(Text, ShowsShortAndEscaped) {
  EXPECT_EQ(show_text("a\nb\x01\xff"), "a\\nb\\x01\\xff");
  EXPECT_EQ(show_text("abcdef", 3), "abc...");
  EXPECT_EQ(show_lines("a\n\tb\x1b[2J"), "a\n\tb\\x1b[2J");
}

TEST(Text, ShowsWhatNobodySees) {
  // What turns the direction, hides, or is obeyed by terminals.
  const std::pair<const char*, const char*> cases[] = {
      {"\u202e", "\\u202e"},   {"\u202a", "\\u202a"},   {"\u2066", "\\u2066"},
      {"\u2069", "\\u2069"},   {"\u200e", "\\u200e"},   {"\u200f", "\\u200f"},
      {"\u061c", "\\u061c"},   {"\u200b", "\\u200b"},   {"\u200d", "\\u200d"},
      {"\u2028", "\\u2028"},   {"\ufeff", "\\ufeff"},   {"\u00ad", "\\u00ad"},
      {"\xC2\x85", "\\u0085"}, {"\xC2\x9b", "\\u009b"}, {"\U000E0041", "\\U000e0041"},
      {"\x7f", "\\x7f"},       {"\xff", "\\xff"},       {"\xED\xA0\x80", "\\xed\\xa0\\x80"}};
  for (const auto& [text, shown] : cases) {
    EXPECT_EQ(show_text(text), shown);
    EXPECT_EQ(show_lines(text), shown);
  }
  for (const char* plain : {"\u00e4\u00f6", "\u65e5\u672c", "\u0645\u0631", "\U0001f600", "\u00a0"})
    EXPECT_EQ(show_text(plain), plain);
}

TEST(Text, BreaksAtBlanksWhereALineIsFull) {
  EXPECT_EQ(wrapped("one two three", 80, 0, 2), "one two three");
  EXPECT_EQ(wrapped("one two three", 8, 0, 2), "one two\n  three");
  EXPECT_EQ(wrapped("one two three", 8, 4, 2), "one\n  two\n  three") << "behind four letters";
  EXPECT_EQ(wrapped("/a/path/that/is/long", 8, 0, 2), "/a/path/that/is/long");
}

TEST(Spelling, FindsWhatWasMeant) {
  const std::vector<std::string> known{"walltime", "memory", "cpus", "max_queued"};
  EXPECT_EQ(nearest_spelling("waltime", known), "walltime");
  EXPECT_EQ(nearest_spelling("Memroy", known), "memory");
  EXPECT_EQ(nearest_spelling("cpu", known), "cpus");
  EXPECT_EQ(nearest_spelling("zebra", known), "");
  EXPECT_EQ(spelling_hint("zebra", {}), "");
}

}  // namespace
}  // namespace hpcbatch
