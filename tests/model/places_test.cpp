// What stands for each task of an array.
#include "model/item.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Places, PartsOfAnItemThatIsAPath) {
  const auto parts = [](const std::string& item) {
    return with_item("{} {.} {/} {//} {/.}", item);
  };
  EXPECT_EQ(parts("/data/a.b/x.tar.gz"),
            "/data/a.b/x.tar.gz /data/a.b/x.tar x.tar.gz /data/a.b x.tar");
  EXPECT_EQ(parts("x.bam"), "x.bam x x.bam . x");
  EXPECT_EQ(parts("a.b/x"), "a.b/x a.b/x x a.b x");
  EXPECT_EQ(parts("/x"), "/x /x x / x");
  EXPECT_EQ(parts("d/.profile"), "d/.profile d/.profile .profile d .profile");
  EXPECT_EQ(parts(""), "   . ");
}

TEST(Places, WhatAnItemHasOfPlacesStays) {
  EXPECT_EQ(with_item("{} {/}", Item("{/}/{.}")), "{/}/{.} {.}");
  EXPECT_EQ(with_item("{#}: {}", Item("{#}"), 7), "7: {#}");
  EXPECT_EQ(with_places("{}.{id}", {{ArrayId{12}, 3}}, Item("{id}")), "{id}.12.3");
}

TEST(Places, OthersStayAsTheyAre) {
  for (const char* text : {"{", "}", "{x}", "{index}", "{ }", "{///}", "a{b", ""})
    EXPECT_EQ(with_item(text, Item("item"), 3), text);
  EXPECT_FALSE(has_item("{index} {#} {id}"));
  EXPECT_FALSE(has_place("{x} {"));
}

TEST(Places, InPathsTheIndexStandsForAMissingItem) {
  const TaskId task{ArrayId{12}, 3};
  EXPECT_EQ(with_places("o.{}.{#}.{index}.{id}", {task}, std::nullopt), "o.3.3.3.12.3");
  EXPECT_EQ(with_places("o.{}.{#}.{index}.{id}", {task, 2}, std::nullopt), "o.2.2.2.12.3")
      << "of an array from 0";
  EXPECT_EQ(with_places("{//}/out/{/.}.txt", {task}, Item("/in/a.wav")), "/in/out/a.txt");
  for (const char* path : {"{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{index}", "{id}"})
    EXPECT_TRUE(has_place(path)) << path;
}

TEST(Places, NumbersAreThereWhereATaskHasOneAndMayHaveAWidth) {
  const TaskId task{ArrayId{12}, 3};
  EXPECT_EQ(with_places("{number}.{array_number}", {task, 2, 2'000'000'014}, std::nullopt),
            "2000000014.2000000012");
  EXPECT_EQ(with_places("{number}.{array_number}", {task}, std::nullopt),
            "{number}.{array_number}");
  EXPECT_EQ(with_places("{index:4}.{#}.{index:1}.{number:12}", {task, 2, 2'000'000'014}, {}),
            "0002.2.2.002000000014");
  EXPECT_EQ(with_places("{index:123}.{:4}.{1:4}.{index:x}", {task}, Item("a")),
            "{index:123}.{:4}.{1:4}.{index:x}");
  EXPECT_TRUE(has_index("{index:4}"));
  EXPECT_TRUE(has_place("{number}"));
  EXPECT_FALSE(has_place("{array_number}")) << "all tasks of an array have the same";
  EXPECT_EQ(with_places("{number}", {task, 2, 5}, Item("a")), "5");
}

Item row(const std::vector<std::pair<std::string, std::string>>& columns) {
  Item item("whole");
  for (const auto& [name, value] : columns) item.add_column(name, value);
  return item;
}

TEST(Places, ColumnsHaveNumbersAndNamesAndPartsToo) {
  const Item item = row({{"sample", "/in/a.bam"}, {"lambda", "0.1"}});
  EXPECT_EQ(with_item("{sample} {1} {2} {lambda} {} {1/.} {sample//} {sample.}", item, 1),
            "/in/a.bam /in/a.bam 0.1 0.1 whole a /in /in/a");
  EXPECT_EQ(with_item("{3} {0} {x} {1x} ${sample} $${1} ${#} {sample", item, 1),
            "{3} {0} {x} {1x} ${sample} $${1} ${#} {sample");
  EXPECT_EQ(with_item("{1} {1/} {2}", Item("a/b")), "a/b b {2}") << "a text is its own column";
  EXPECT_EQ(with_places("/o/{lambda}/{1/}.{#}", {{ArrayId{12}, 3}}, item), "/o/0.1/a.bam.3");
  EXPECT_TRUE(has_item("{2}", item));
  EXPECT_FALSE(has_item("{3}{x}", item));
  EXPECT_EQ(first_item_place("a{3} {2/}", item), "{2/}");
  EXPECT_EQ(columns_asked_for("{sample} ${no} {2/} {} {#} {a b}"),
            (std::vector<std::string_view>{"sample", "2"}));
}

TEST(Places, WhatLooksLikeAPlaceAndIsNoneIsFound) {
  const Item item = row({{"sample", "a"}, {"lane", "1"}});
  EXPECT_EQ(stray_places("{sample} {sampel} {2/} {3} {%} {index} {id} {#} {}", item, {"index"}),
            (std::vector<std::string_view>{"{sampel}", "{3}", "{%}", "{id}"}));
  EXPECT_TRUE(stray_places(
                  "${x} %{x} @{u} [0-9]{4} \\d{4} (a){2} {a,b} {1..3} { x; } {x.y} {\"a\":1} {-} {",
                  item, {})
                  .empty());
}

TEST(Places, AColumnThatIsCalledIdOrIndexIsMeant) {
  const TaskId task{ArrayId{12}, 3};
  EXPECT_EQ(with_places("{id}.{index}", {task}, row({{"id", "x"}, {"index", "y"}})), "x.y");
  EXPECT_FALSE(has_id("{id}", row({{"id", "x"}})));
  EXPECT_TRUE(has_id("{id}", row({{"name", "x"}})));
}

TEST(Places, APathMayBeginWithAColumn) {
  for (const char* path : {"{}", "{1}/x", "{sample//}/x", "{dir.}"})
    EXPECT_TRUE(begins_with_item(path)) << path;
  for (const char* path : {"{/}", "{1/}", "{#}", "x{}", "{a b}", "{"})
    EXPECT_FALSE(begins_with_item(path)) << path;
}

TEST(Places, ADoubledBraceOfANameIsOneThatIsMeantAsItStands) {
  const TaskId task{ArrayId{12}, 3};
  const auto name = [&](const char* text) { return with_places(text, {task}, Item("x")); };
  EXPECT_EQ(name("d{{id}}/{id}"), "d{id}/12.3");
  EXPECT_EQ(name("{{{id}}}"), "{12.3}");
  EXPECT_EQ(name("{{}}{}}}{{"), "{}x}{");
  EXPECT_EQ(with_item("{{}}.{}", Item("x")), "{}.x");
  EXPECT_FALSE(has_place("{{id}}"));
  EXPECT_TRUE(has_place("{{{id}}}"));
  EXPECT_TRUE(stray_places("{{foo}}", Item("x"), {}).empty());
  EXPECT_EQ(without_doubled("{{a}} {id} }}"), "{a} {id} }");
  for (const char* text : {"{id}", "{{id}}", "{", "}}}", "a{b", "{}", "${id}", "{{{"}) {
    EXPECT_EQ(name(as_it_stands(text).c_str()), text);
    EXPECT_EQ(without_doubled(as_it_stands(text)), text);
  }
}

TEST(Places, InACommandTheyAreAnotherLanguages) {
  EXPECT_EQ(with_item("{{.Name}} {}", Item("x"), 1), "{{.Name}} x");
  EXPECT_EQ(with_item("{{}}", Item("x"), 1), "{x}");
}

}  // namespace
}  // namespace hpcbatch
