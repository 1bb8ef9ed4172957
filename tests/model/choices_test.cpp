// What tasks choose of their batch jobs: which tags are choices, what is made for them, and who may
// run there.
#include "model/site.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Site site_with(std::map<std::string, std::vector<std::string>> choices) {
  Site site{.name = "here"};
  site.choices = std::move(choices);
  return site;
}
Needs asking(std::vector<std::string> tags) {
  Needs needs;
  needs.tags = std::move(tags);
  return needs;
}

TEST(Choices, AreTagsThatTheSiteLetsTasksChoose) {
  const Site site = site_with({{"account", {}}, {"qos", {"long", "short"}}});
  EXPECT_TRUE(may_choose(site, "account=anything"));
  EXPECT_TRUE(may_choose(site, "qos=long"));
  for (const std::string_view tag :
       {"qos=higher", "qos=", "qos", "reservation=x", "=long", "", "account=a+b", "account",
        "account=$(id)", "account=a>b", "account=a'b", "account=-x", "account=\xc3\xa4",
        "account=a&b"})
    EXPECT_FALSE(may_choose(site, tag)) << tag;
  EXPECT_FALSE(may_choose(site, "account=" + std::string(300, 'x')));
  EXPECT_TRUE(may_choose(site_with({{"constraint", {}}}), "constraint=[a|b]&c*2"));
  EXPECT_FALSE(may_choose(site_with({{"constraint", {}}}), "constraint=a;b"));
  EXPECT_FALSE(may_choose(Site{}, "account=x")) << "nothing is known of it yet";
  EXPECT_THAT(choices_of(asking({"account=a", "fast", "qos=long", "reservation=x"}), site),
              ElementsAre("account=a", "qos=long"));
  EXPECT_THAT(choices_of(asking({"account=a", "account=b"}), site), IsEmpty())
      << "a batch job has one";
}

TEST(Choices, AShapeIsMadeForThem) {
  const Shape configured{.name = "short", .tags = {"account=all", "fast", "partition=p"}};
  const Shape made = made_for(configured, {"account=mine", "qos=long"});
  EXPECT_EQ(made.name, "short+account=mine+qos=long");
  EXPECT_THAT(made.made_for, ElementsAre("account=mine", "qos=long"));
  EXPECT_THAT(made.tags, ElementsAre("account=mine", "fast", "partition=p", "qos=long"));
  EXPECT_EQ(configured_name(made.name), "short");
  EXPECT_THAT(choices_in_name(made.name), ElementsAre("account=mine", "qos=long"));
  EXPECT_THAT(choices_in_name("short"), IsEmpty());
  EXPECT_EQ(configured_name("short"), "short");
  EXPECT_EQ(made_for(configured, {"account=all"}), configured) << "it has that already";
}

TEST(Choices, KeepTheTasksOfOthersAway) {
  const Shape configured{.name = "short", .tags = {"fast"}};
  const Shape mine = made_for(configured, {"account=mine"});
  EXPECT_TRUE(could_run(asking({"account=mine"}), mine));
  EXPECT_TRUE(could_run(asking({"account=mine", "fast"}), mine));
  EXPECT_FALSE(could_run(asking({}), mine)) << "somebody else would be charged";
  EXPECT_FALSE(could_run(asking({"account=yours"}), mine));
  EXPECT_FALSE(could_run(asking({"account=mine", "qos=long"}), mine));
  EXPECT_FALSE(could_run(asking({"account=mine"}), configured));
}

TEST(Choices, OfSeveralPartitionsOneIsEnough) {
  const std::vector<std::string> tags{"fast", "partition=b"};
  EXPECT_TRUE(has_tags(tags, {"partition=a,b"}));
  EXPECT_TRUE(has_tags(tags, {"fast", "partition=b,a"}));
  EXPECT_FALSE(has_tags(tags, {"partition=a,c"}));
  EXPECT_FALSE(has_tags({"partition=a,b"}, {"partition=a"})) << "it may start in b";
  EXPECT_TRUE(has_tags({"partition=a,b"}, {"partition=a,b"}));
  EXPECT_FALSE(has_tags(tags, {"other=fast,b"}));
}

TEST(Choices, OfSeveralFeaturesAllAreWanted) {
  const std::vector<std::string> tags{"constraint=avx", "constraint=ssd"};
  EXPECT_TRUE(has_tags(tags, {"constraint=avx&ssd"}));
  EXPECT_FALSE(has_tags(tags, {"constraint=avx&gpu"}));
  EXPECT_FALSE(has_tags(tags, {"constraint=avx|gpu"})) << "only the batch system reads that";
}

}  // namespace
}  // namespace hpcbatch
