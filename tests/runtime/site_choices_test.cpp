// What a configuration lets tasks choose, against what the batch system has a word for.
#include "sites/allocation_request.hpp"

#include "hpcbatch/choices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Speechless : Scheduler {
  std::string script(const AllocationRequest&) const override { return ""; }
  CommandLine submit(const AllocationRequest&, const std::string&) const override { return {}; }
  std::variant<std::string, SubmitRefused> read_submit(const CommandOutput&) const override {
    return "";
  }
  CommandLine poll(const std::string&, const std::vector<std::string>&) const override {
    return {};
  }
  Result<std::vector<BatchJob>> read_poll(const std::string&, const CommandOutput&) const override {
    return std::vector<BatchJob>{};
  }
  CommandLine cancel(const std::vector<std::string>&,
                     const std::vector<std::string>&) const override {
    return {};
  }
  CommandLine probe() const override { return {}; }
  Result<std::vector<Offer>> read_probe(const CommandOutput&) const override {
    return std::vector<Offer>{};
  }
};

struct WithWords : Speechless, Choices {
  std::vector<std::string> choice_keys() const override { return {"account", "qos"}; }
  std::vector<std::string> options_for(const std::vector<std::string>& choices) const override {
    std::vector<std::string> options;
    options.reserve(choices.size());
    for (const std::string& choice : choices) options.push_back("--" + choice);
    return options;
  }
};

Site site() {
  Site site{.name = "here", .scheduler = "mine"};
  site.shapes = {{.name = "a", .tags = {"fast"}}, {.name = "b", .tags = {"constraint=avx"}}};
  return site;
}

TEST(SiteChoices, AreWhatTheBatchSystemHasAWordForUnlessTheConfigurationSaysLess) {
  Site open = site();
  ASSERT_TRUE(settle_choices(open, WithWords{}));
  EXPECT_EQ(open.choices->size(), 2U);
  Site narrow = site();
  narrow.choices.emplace()["account"] = {"lab", "course"};
  ASSERT_TRUE(settle_choices(narrow, WithWords{}));
  EXPECT_THAT(narrow.choices->at("account"), ElementsAre("lab", "course"));
  EXPECT_EQ(narrow.choices->size(), 1U);
  Site closed = site();
  closed.choices.emplace();
  ASSERT_TRUE(settle_choices(closed, WithWords{}));
  EXPECT_TRUE(closed.choices->empty());
}

TEST(SiteChoices, AShapeThatNoBatchJobWouldBeAskedWithIsRefused) {
  Site wrong = site();
  wrong.shapes[0].tags = {"account=lab"};
  EXPECT_THAT(settle_choices(wrong, WithWords{}).error().text,
              HasSubstr("site here: shape a has the tag account=lab, which tasks choose by "
                        "themselves; leave it out, or for all batch jobs"));
  Site speechless = site();
  speechless.shapes[0].tags = {"account=lab"};
  EXPECT_TRUE(settle_choices(speechless, Speechless{})) << "there it is a tag like others";
}

TEST(SiteChoices, WhatCannotBeSaidIsRefused) {
  Site wrong = site();
  wrong.choices.emplace()["reservation"];
  EXPECT_THAT(settle_choices(wrong, WithWords{}).error().text,
              HasSubstr("site here: 'choices' has 'reservation', for which the scheduler mine has "
                        "no word; tasks can choose account, qos"));
  EXPECT_THAT(settle_choices(wrong, Speechless{}).error().text,
              HasSubstr("tasks can choose nothing there"));
  Site plain = site();
  ASSERT_TRUE(settle_choices(plain, Speechless{}));
  EXPECT_TRUE(plain.choices->empty());
}

TEST(SiteChoices, AnAllocationIsNeverAskedForWithout) {
  AllocationRequest request{.options = {"--first"}};
  ASSERT_TRUE(add_choices(WithWords{}, {"account=lab"}, request));
  EXPECT_THAT(request.options, ElementsAre("--first", "--account=lab"));
  EXPECT_FALSE(add_choices(Speechless{}, {"account=lab"}, request));
  EXPECT_TRUE(add_choices(Speechless{}, {}, request));
}

}  // namespace
}  // namespace hpcbatch
