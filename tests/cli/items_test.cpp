// Lists, tables and JSON lines as the items of an array.
#include "cli/tasks/items.hpp"
#include "cli/process/process.hpp"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

using Lines = std::vector<std::string>;

json::value items(const std::vector<Lines>& sources, const ItemOptions& options = {}) {
  std::vector<SourceText> texts;
  texts.reserve(sources.size());
  for (const Lines& lines : sources)
    texts.push_back({"list" + std::to_string(texts.size() + 1), lines});
  return items_of(texts, options).items;
}

std::string refused_items(const std::vector<Lines>& sources, const ItemOptions& options = {}) {
  try {
    items(sources, options);
  } catch (const CommandError& error) {
    return error.what();
  }
  return "";
}

ItemOptions columns(const std::string& separator, bool header = false) {
  ItemOptions options;
  options.columns = separator;
  options.header = header;
  return options;
}

TEST(ItemsTest, AreTheLinesThatHoldSomething) {
  EXPECT_EQ(items({{"a", "", "b c", "last"}}), json::parse(R"(["a", "b c", "last"])"));
  EXPECT_EQ(refused_items({{"", ""}}), "list1 has no items: there is nothing to run");
}

TEST(ItemsTest, SeveralListsGiveAllCombinations) {
  EXPECT_EQ(items({{"a", "b"}, {"1", "2"}}),
            json::parse(R"([["a", "1"], ["a", "2"], ["b", "1"], ["b", "2"]])"));
  EXPECT_EQ(refused_items({Lines(3000, "x"), Lines(3000, "y")}),
            "there are over 5000000 combinations; --link takes the first of each, the second of "
            "each and so on");
}

TEST(ItemsTest, LinkedListsGivePairs) {
  ItemOptions options;
  options.link = true;
  EXPECT_EQ(items({{"a", "b"}, {"1", "2"}}, options), json::parse(R"([["a", "1"], ["b", "2"]])"));
  EXPECT_EQ(refused_items({{"a", "b"}, {"1"}}, options),
            "--link takes as many from each: list1 has 2 items, and list2 has 1");
}

TEST(ItemsTest, LinesHaveColumns) {
  EXPECT_EQ(items({{"a,b", "c,"}}, columns(",")), json::parse(R"([["a", "b"], ["c", ""]])"));
  EXPECT_EQ(items({{"a\tb c"}}, columns("tab")), json::parse(R"([["a", "b c"]])"));
  EXPECT_EQ(items({{"  a \t b"}}, columns("space")), json::parse(R"([["a", "b"]])"));
  EXPECT_EQ(items({{"a::b"}}, columns("::")), json::parse(R"([["a", "b"]])"));
  EXPECT_EQ(refused_items({{"a,b", "", "c"}}, columns(",")),
            "list1:3: this line has 1 columns, and the first one has 2");
}

TEST(ItemsTest, AColumnInQuotationMarksMayHoldTheSeparator) {
  EXPECT_EQ(items({{R"("a,""b""",c)"}}, columns(",")), json::parse(R"([["a,\"b\"", "c"]])"));
  EXPECT_EQ(items({{R"(5" disk,c)"}}, columns(",")), json::parse(R"([["5\" disk", "c"]])"));
  EXPECT_EQ(items({{"\"a\tb\"\t\"c d"}}, columns("\\t")), json::parse(R"([["a\tb", "\"c d"]])"))
      << "between tabs a mark may stand for itself";
  EXPECT_EQ(items({{"5\"\t\"a\" b"}}, columns("tab")), json::parse(R"([["5\"", "\"a\" b"]])"));
  EXPECT_EQ(refused_items({{R"("a,c)"}}, columns(",")), "list1:1: a quotation mark is not closed");
  EXPECT_EQ(refused_items({{"x,y", R"("a"b,c)"}}, columns(",")),
            "list1:2: something stands behind a closing quotation mark");
}

TEST(ItemsTest, AHeaderNamesTheColumns) {
  const Items named =
      items_of({{"a", {"sample,lane", "x,1"}}, {"b", {"lambda", "0.1"}}}, columns(",", true));
  EXPECT_EQ(named.columns, (Lines{"sample", "lane", "lambda"}));
  EXPECT_EQ(named.items, json::parse(R"([["x", "1", "0.1"]])"));
  EXPECT_EQ(refused_items({{"sample,lane"}}, columns(",", true)),
            "list1 has no items: there is nothing to run");
}

TEST(ItemsTest, JsonLinesHaveFields) {
  EXPECT_EQ(items({{R"({"a": 1.10, "n": null})", " ", R"( {"a": "x\"y", "l": [1, "]"]})"}}),
            json::parse(R"([{"a": "1.10", "n": ""}, {"a": "x\"y", "l": "[1, \"]\"]"}])"));
  const Items lines = items_of({{"a", {R"({"big": 123456789012345678901234, "e":1e3})"}}}, {});
  EXPECT_EQ(lines.items, json::parse(R"([{"big": "123456789012345678901234", "e": "1e3"}])"));
  EXPECT_EQ(lines.texts, (Lines{R"({"big": 123456789012345678901234, "e":1e3})"}));
  EXPECT_EQ(items_of({{"--items", {"{}", "", "{#}"}, false}}, {}).items,
            json::parse(R"(["{}", "", "{#}"])"))
      << "words are what they are";
  EXPECT_EQ(refused_items({{R"({"a": 1, "a": 2})"}}), "list1:1: 'a' is there twice");
  EXPECT_EQ(refused_items({{R"({"a": 1})", "{a}"}}),
            "list1:2: this line is no JSON object, though the first one is");
  EXPECT_EQ(items({{"{a}", "{b}"}}), json::parse(R"(["{a}", "{b}"])")) << "no JSON: texts";
  EXPECT_EQ(refused_items({{R"({"a": 1})"}, {"b"}}),
            "list1 has JSON lines, which stand alone: put all fields into them");
}

TEST(ItemsTest, WhatIsNoUtf8GoesAsItIs) {
  EXPECT_EQ(items({{"a", "caf\xe9"}}).at(1), json::value("caf\xe9"));
}

TEST(ItemsTest, JsonLinesAreUtf8) {
  EXPECT_NE(refused_items({{"{\"path\": \"caf\xe9\"}"}}).find("begins as JSON lines do"),
            std::string::npos);
}

TEST(ItemsTest, Utf16IsRefused) {
  EXPECT_EQ(refused_items({{"\xff\xfe"
                            "a"}}),
            "list1 begins like UTF-16; 'iconv -f UTF-16 -t UTF-8' makes a list of it");
}

}  // namespace
}  // namespace hpcbatch
