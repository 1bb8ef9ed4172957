// What is quoted for sh comes out of sh unchanged.
#include "hpcbatch/shell_quote.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace hpcbatch {
namespace {

TEST(ShellQuote, EveryWordComesBackAsItWas) {
  const std::vector<std::string> words{"plain",           "",           "a b", "it's", "'",
                                       "$HOME `id` \\",   "two\nlines", "*",   "-n",   "\"",
                                       "\x01\x7f\xc3\xa4"};
  std::FILE* pipe = ::popen(("printf '<%s>' " + shell_quoted(words)).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0);
  std::string expected;
  for (const std::string& word : words) expected += "<" + word + ">";
  EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace hpcbatch
