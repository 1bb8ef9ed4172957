// The strict reader: what it keeps, what it refuses, where it says so, and what a hostile document
// costs.
#include "documents/view.hpp"
#include "documents/yaml.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace hpcbatch {
namespace {

std::string yaml_refusal(std::string_view text, const DocumentLimits& limits = {}) {
  try {
    parse_yaml(text, "f.yaml", limits);
  } catch (const DocumentError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Yaml, KeepsTheTextOfScalars) {
  const Node node = parse_yaml(
      "a: 6\nb: 010\nc: yes\nd: 1e3\ne: ~\nf: 2024-01-01\ng: 'null'\nh: \"a\\nb\"\ni:\nj: !\n", "f",
      {});
  EXPECT_EQ(node.find("a")->text, "6");
  EXPECT_EQ(node.find("b")->text, "010");
  EXPECT_EQ(node.find("c")->text, "yes");
  EXPECT_EQ(node.find("d")->text, "1e3");
  EXPECT_EQ(node.find("e")->kind, Node::Kind::Null);
  EXPECT_EQ(node.find("f")->text, "2024-01-01");
  EXPECT_EQ(node.find("g")->text, "null");
  EXPECT_TRUE(node.find("g")->quoted);
  EXPECT_EQ(node.find("h")->text, "a\nb");
  EXPECT_EQ(node.find("i")->kind, Node::Kind::Null);
  EXPECT_EQ(node.find("nothing"), nullptr);
}

TEST(Yaml, KnowsLines) {
  const Node node = parse_yaml("\n# note\na:\n  - x\n  - y: 1\n    z:\nb: 2\n", "f");
  EXPECT_EQ(node.fields[0].line, 3);
  EXPECT_EQ(node.find("a")->items[1].line, 5);
  EXPECT_EQ(node.find("a")->items[1].find("z")->line, 6);
  EXPECT_EQ(node.fields[1].line, 7);
}

TEST(Yaml, ToleratesByteOrderMarkAndCarriageReturns) {
  const Node node = parse_yaml(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: |\r\n  x\r\n  y\r\n",
      "f");
  EXPECT_EQ(node.find("a")->text, "1");
  EXPECT_EQ(node.find("b")->text, "x\ny\n");
}

TEST(Yaml, ReadsJson) {
  const Node node = parse_yaml(R"({"a": ["x", 1, null], "b": {"c": true}})", "f");
  EXPECT_EQ(node.find("a")->items.size(), 3U);
  EXPECT_EQ(node.find("b")->find("c")->text, "true");
}

TEST(Yaml, EmptyTextIsNull) {
  EXPECT_EQ(parse_yaml("", "f").kind, Node::Kind::Null);
  EXPECT_EQ(parse_yaml("# nothing\n", "f").kind, Node::Kind::Null);
  EXPECT_EQ(parse_yaml("---\n", "f").kind, Node::Kind::Null);
}

struct Document {
  const char* name;
  std::string text;
  std::string says;
};

class BadYaml : public testing::TestWithParam<Document> {};

TEST_P(BadYaml, IsRefusedWithItsLine) {
  EXPECT_EQ(yaml_refusal(GetParam().text), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadYaml,
    testing::Values(
        Document{"Anchor", "a: 1\nb: &x 2\n",
                 "f.yaml:2: an anchor (&name) is not allowed; write the value out"},
        Document{"AnchorOfAList", "a: &x [1]\n",
                 "f.yaml:1: an anchor (&name) is not allowed; write the value out"},
        Document{"SelfAlias", "&x [*x]",
                 "f.yaml:1: an anchor (&name) is not allowed; write the value out"},
        Document{"Tag", "a: !!python/object:os.system x\n",
                 "f.yaml:1: a tag (tag:yaml.org,2002:python/object:os.system) is not allowed"},
        Document{"MergeKey", "a: 1\nb:\n  <<: {c: 1}\n",
                 "f.yaml:3: a merge key (<<) is not allowed; write the keys out"},
        Document{"DuplicateKey", "a: 1\nb: 2\na: 3\n",
                 "f.yaml:3: the key 'a' stands here a second time"},
        Document{"TwoDocuments", "a: 1\n---\nb: 1\n",
                 "f.yaml:2: a second document begins here; the file must hold one"},
        Document{"MapAsKey", "{a: 1}: 2\n", "f.yaml:1: a key must be a text, not a list or a map"},
        Document{"EmptyKey", "~: 2\n", "f.yaml:1: a key is empty; a key must be a text"},
        Document{"Nul", std::string("a: x\nb: y\0z\n", 12),
                 "f.yaml:2: the text holds the control byte 0x00"},
        Document{"EscapedNul", "a: \"x\\0y\"\n", "f.yaml:1: 'x\\x00y' holds a control byte"},
        Document{"Escape", "a: \x1b[2J\n", "f.yaml:1: the text holds the control byte 0x1b"},
        Document{"LoneCarriageReturn", "a: x\rb: y\n",
                 "f.yaml:1: the text holds the control byte 0x0d"},
        Document{"InvalidUtf8", "a: 1\nb: \xff\n", "f.yaml:2: the text is not valid UTF-8"},
        Document{"Utf16",
                 std::string("\xff\xfe"
                             "a\0:\0",
                             6),
                 "f.yaml:1: the text is not valid UTF-8"},
        Document{"Broken", "a: 1\nb: [1, 2\n",
                 "f.yaml:3: this is not valid YAML: end of sequence flow not found"},
        Document{
            "TwoColons", "a: b: c\n",
            "f.yaml:1: this is not valid YAML: illegal map value; a text with ': ' in it stands "
            "in quotes: name: \"a: b\""},
        Document{"Deep", std::string(40, '[') + std::string(40, ']'),
                 "f.yaml:1: lists and maps are nested more than 32 deep"}),
    [](const auto& row) { return row.param.name; });

TEST(Yaml, CapsStopHostileDocumentsEarly) {
  std::string many;
  for (int i = 0; i < 150'000; ++i) many += "k" + std::to_string(i) + ":\n";
  EXPECT_EQ(yaml_refusal(many), "f.yaml:1: the document is larger than 1048576 bytes");
  EXPECT_EQ(yaml_refusal(many.substr(0, 1 << 20)),
            "f.yaml:5001: the document has more than 10000 values");
  EXPECT_NE(yaml_refusal(std::string(100'000, '[')), "accepted");
  std::string nested;
  for (int i = 0; i < 5'000; ++i) nested += "{a: ";
  EXPECT_NE(yaml_refusal(nested), "accepted");
  std::string blocks;
  for (int i = 0; i < 700; ++i) blocks += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(yaml_refusal(blocks), "f.yaml:33: lists and maps are nested more than 32 deep");
}

TEST(Yaml, ReadsLongFlowCollections) {
  std::string list = "x0";
  for (int i = 1; i < 2'000; ++i) list += ", x" + std::to_string(i);
  EXPECT_EQ(parse_yaml("[" + list + "]", "f").items.size(), 2'000U);
  EXPECT_EQ(parse_yaml("a: [" + list + "]\n", "f").find("a")->items.size(), 2'000U);
  const Node json = parse_yaml(
      "{\"a\": {\"b\": [" + list + "], \"c\": \"" + std::string(3'000, 'y') + "\"}, \"d\": 1}",
      "f");
  EXPECT_EQ(json.find("a")->find("c")->text.size(), 3'000U);
  EXPECT_EQ(json.find("d")->text, "1");
}

TEST(Yaml, ReadsALongArgument) {
  const std::string value(900'000, 'x');
  const Node node = parse_yaml("a: " + value + "\n", "f");
  EXPECT_EQ(node.find("a")->text, value);
}

TEST(Yaml, ReadsOnlyRegularFiles) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("yaml_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(read_yaml(fifo), DocumentError);
  EXPECT_THROW(read_yaml(folder), DocumentError);
  EXPECT_THROW(read_yaml(folder / "missing"), DocumentError);
  std::ofstream(folder / "good") << "a: 1\n";
  EXPECT_EQ(read_yaml(folder / "good").find("a")->text, "1");
  std::ofstream(folder / "large") << std::string(2 << 20, ' ');
  EXPECT_THROW(read_yaml(folder / "large"), DocumentError);
  std::filesystem::remove_all(folder);
}

TEST(Yaml, WritesABlockAgainOnItsLines) {
  const Node node = parse_yaml(
      "x: 1\nplugin:\n  a: 8\n  b: \"8\"\n  c: [p, {q: 'a: b'}]\n\n  d: |\n    one\n    two\n  e: "
      "~\n  f: {}\n",
      "f");
  const std::string text = to_yaml(*node.find("plugin"));
  const Node again = parse_yaml(text, "g");
  ASSERT_EQ(again.fields.size(), 6U) << text;
  EXPECT_EQ(again.find("a")->text, "8");
  EXPECT_FALSE(again.find("a")->quoted);
  EXPECT_TRUE(again.find("b")->quoted);
  EXPECT_EQ(again.find("c")->items[1].find("q")->text, "a: b");
  EXPECT_EQ(again.find("d")->text, "one\ntwo\n");
  EXPECT_EQ(again.find("e")->kind, Node::Kind::Null);
  EXPECT_EQ(again.find("f")->kind, Node::Kind::Map);
  EXPECT_EQ(again.fields[0].line, 3);
  EXPECT_EQ(again.fields[1].line, 4);
}

TEST(Yaml, WritesNastyTexts) {
  for (const std::string nasty :
       {"", " x ", "a\"b\\c", "# no comment", "- x", "a: b", "\t", "~", "<<", "é"}) {
    Node node;
    node.kind = Node::Kind::Map;
    Node value;
    value.kind = Node::Kind::Scalar;
    value.text = nasty;
    value.quoted = true;
    node.fields.push_back(Field{nasty, 1, value});
    const Node again = parse_yaml(to_yaml(node), "g");
    EXPECT_EQ(again.fields.at(0).name, nasty);
    EXPECT_EQ(again.fields.at(0).value.text, nasty);
  }
}

std::string complaint(const std::string& text, void (*look)(const View&)) {
  const Node node = parse_yaml(text, "f");
  const std::string file = "f.yaml";
  try {
    look(View(node, file, "the file"));
  } catch (const DocumentError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(View, SaysWhatWasExpected) {
  EXPECT_EQ(complaint("cpus: many", [](const View& v) { v.map().get("cpus").integer(1, 64); }),
            "f.yaml:1: 'cpus' must be a whole number from 1 to 64, not 'many'");
  EXPECT_EQ(complaint("cpus: 65", [](const View& v) { v.map().get("cpus").integer(1, 64); }),
            "f.yaml:1: 'cpus' must be a whole number from 1 to 64, not '65'");
  EXPECT_EQ(complaint("time: soon", [](const View& v) { v.map().get("time").duration(); }),
            "f.yaml:1: 'time' must be a duration such as 90s, 1h30m, 2d or HH:MM:SS, not 'soon'");
  EXPECT_EQ(complaint("memory: [1]", [](const View& v) { v.map().get("memory").size(); }),
            "f.yaml:1: 'memory' must be a size such as 512M or 8G, not a list");
  EXPECT_EQ(complaint("x: /tmp\nlist: 3", [](const View& v) { v.map().get("list").list(); }),
            "f.yaml:2: 'list' must be a list, not '3'");
  EXPECT_EQ(complaint("link: autp",
                      [](const View& v) {
                        v.map().get("link").one_of({"auto", "unix"});
                      }),
            "f.yaml:1: 'link' must be one of auto, unix, not 'autp'; did you mean 'auto'?");
  EXPECT_EQ(complaint("a: 1", [](const View& v) { v.map().get("b"); }),
            "f.yaml:1: 'b' is missing in the file");
  EXPECT_EQ(complaint("b:", [](const View& v) { v.map().get("b"); }),
            "f.yaml:1: 'b' of the file must not be empty");
  EXPECT_EQ(complaint("- 1", [](const View& v) { v.map(); }),
            "f.yaml:1: 'the file' must be a map (key: value), not a list");
}

TEST(View, UnknownKeysAreErrorsWithTheNearestSpelling) {
  const auto look = [](const View& v) {
    MapView map = v.map();
    map.find("walltime");
    map.find("cpus");
    map.finish();
  };
  EXPECT_EQ(complaint("cpus: 1\nwaltime: 2", look),
            "f.yaml:2: unknown key 'waltime' in the file; did you mean 'walltime'?");
  EXPECT_EQ(complaint("zebra: 2", look),
            "f.yaml:1: unknown key 'zebra' in the file; known are walltime, cpus");
}

}  // namespace
}  // namespace hpcbatch
