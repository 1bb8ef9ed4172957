// The reader of TOML: the letters it keeps, the lines it names.
#include "documents/yaml.hpp"

#include <gmock/gmock.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

std::string toml_refusal(std::string_view text, const DocumentLimits& limits = {}) {
  try {
    parse_toml(text, "f.toml", limits);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Toml, KeepsTheLettersOfScalars) {
  const Node node = parse_toml(
      "a = 1_000\nb = 0x10\nc = 0.10 # not 0.1\nd = 1e-3\ne = true\nf = 2024-01-01\n"
      "'ä \"ö' = [0.50,1.0 , 07:32:00]\nh = \"010\"\ni = 1_0.5\nj = inf",
      "f");
  EXPECT_EQ(node.find("a")->text, "1000");
  EXPECT_EQ(node.find("b")->text, "16");
  EXPECT_EQ(node.find("c")->text, "0.10");
  EXPECT_EQ(node.find("d")->text, "1e-3");
  EXPECT_EQ(node.find("e")->text, "true");
  EXPECT_EQ(node.find("f")->text, "2024-01-01");
  EXPECT_EQ(node.find("h")->text, "010");
  EXPECT_TRUE(node.find("h")->quoted);
  EXPECT_EQ(node.find("i")->text, "10.5");
  EXPECT_EQ(node.find("j")->text, "inf");
  const Node& list = *node.find("ä \"ö");
  ASSERT_EQ(list.items.size(), 3U);
  EXPECT_EQ(list.items[0].text, "0.50");
  EXPECT_EQ(list.items[1].text, "1.0");
  EXPECT_EQ(list.items[2].text, "07:32:00");
}

TEST(Toml, ColumnsAreCountedAsTheyAreTold) {
  const Node marked = parse_toml(
      "\xEF\xBB\xBF"
      "a = [1.50, \"\xC3\xA4\", 2020-01-01, -inf]\nb = 2.0\n",
      "f");
  EXPECT_EQ(marked.find("a")->items[0].text, "1.50");
  EXPECT_EQ(marked.find("a")->items[2].text, "2020-01-01");
  EXPECT_EQ(marked.find("a")->items[3].text, "-inf");
  EXPECT_EQ(marked.find("b")->text, "2.0");
  std::string line = "a = [";
  for (int i = 0; i < 30'000; ++i) line += "0." + std::to_string(10'000 + i) + ", ";
  const Node many = parse_toml(line + "]", "f", {1 << 20, 100'000, 4});
  EXPECT_EQ(many.find("a")->items.back().text, "0.39999");
}

TEST(Toml, KeepsTheOrderAndTheLinesOfKeys) {
  const Node node = parse_toml(
      "[[tasks]]\nname = \"z\"\ncommand = [\"a\"]\n\n[[tasks]]\n"
      "env.B = \"1\"\nenv.A = \"2\"\n[tasks.inputs]\nx = \"y\"\n",
      "f");
  const Node& tasks = *node.find("tasks");
  ASSERT_EQ(tasks.items.size(), 2U);
  EXPECT_EQ(tasks.items[0].fields[0].name, "name");
  EXPECT_EQ(tasks.items[0].fields[1].name, "command");
  EXPECT_EQ(tasks.items[0].fields[1].line, 3);
  EXPECT_EQ(tasks.items[1].line, 5);
  EXPECT_EQ(tasks.items[1].find("env")->fields[0].name, "B");
  EXPECT_EQ(tasks.items[1].find("inputs")->find("x")->line, 9);
}

TEST(Toml, CountsTheLevelsOfDottedKeysBeforeItBuildsThem) {
  const auto dotted = [](std::size_t count, const std::string& part) {
    std::string key = part;
    for (std::size_t i = 1; i < count; ++i) key += "." + part;
    return key;
  };
  const DocumentLimits wide{std::size_t{64} << 20, 10'000'000, 32};
  for (const std::string& deep :
       {"x = 1\n" + dotted(200'000, "a") + " = 1", "[" + dotted(200'000, "a") + "]",
        "[[" + dotted(200'000, "a") + "]]", "b = {" + dotted(200'000, "a") + " = 1}",
        dotted(200'000, "\"a.b\"") + " = 1", dotted(200'000, "''") + " = 1",
        "b = [{" + dotted(200'000, " a ") + " = 1}]"})
    EXPECT_THAT(toml_refusal(deep, wide), HasSubstr("more than 32 levels")) << deep.substr(0, 20);
  std::string inner;
  for (int i = 0; i < 255; ++i) inner += "{" + dotted(32, "a") + " = ";
  EXPECT_NE(toml_refusal("a = " + inner, wide), "accepted");
  EXPECT_NE(toml_refusal("a = " + inner + "1" + std::string(255, '}'), wide), "accepted");
  EXPECT_NE(toml_refusal("a = " + std::string(1'000'000, '['), wide), "accepted");
  const std::string dots(1'000, '.');
  EXPECT_EQ(toml_refusal("a = \"" + dots + "\" # " + dots + "\nb = '" + dots +
                             "'\nc = \"\"\"\n\\\"" + dots + "\n\"\"\"\nd = [1.5, 2.5]\n",
                         wide),
            "accepted");
}

TEST(Toml, SaysWhereItIsWrong) {
  EXPECT_THAT(toml_refusal("a = 1\nb = \n"), HasSubstr("f.toml:2: this is not valid TOML: "));
  EXPECT_THAT(toml_refusal("a = 1\na = 2\n"), HasSubstr("f.toml:2: "));
  EXPECT_THAT(toml_refusal("a = 010"), HasSubstr("f.toml:1: "));
  EXPECT_THAT(toml_refusal("a = \"\\u0000\""), HasSubstr("control byte"));
  EXPECT_THAT(toml_refusal("a = \"\xff\""), HasSubstr("f.toml:1: "));
  EXPECT_THAT(toml_refusal("a = [1,2,3]", {.bytes = 100, .nodes = 4}), HasSubstr("more than 4"));
  EXPECT_THAT(toml_refusal("a = [[[1]]]", {.bytes = 100, .nodes = 40, .depth = 2}),
              HasSubstr("more than 2 levels"));
  EXPECT_THAT(toml_refusal("a = 123456789", {.bytes = 5}), HasSubstr("larger than 5 bytes"));
  EXPECT_THAT(toml_refusal(std::string(100'000, '[')), HasSubstr("not valid TOML"));
}

}  // namespace
}  // namespace hpcbatch
