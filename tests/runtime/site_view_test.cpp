// What a pilot is told of a task whose files its site does not see.
#include "staging/site_view.hpp"

#include <gtest/gtest.h>

#include <map>

namespace hpcbatch {
namespace {

class SiteViewTest : public ::testing::Test {
 protected:
  SiteViewTest() {
    site_.name = "far";
    site_.workspace = "/scratch/hb";
    site_.path_map = {{"/archive", "/gpfs/archive"}};
    start_.add_argv("tool");
  }
  std::optional<std::string> show() {
    return show_at(start_, site_, "/scratch/hb/out/x", [this](const std::string& path) {
      const auto at = brought_.find(path);
      return at == brought_.end() ? std::nullopt : std::optional(at->second);
    });
  }
  void add_output(const std::string& destination, bool checked = false) {
    wire::Output* output = start_.add_outputs();
    output->set_name("o");
    output->set_staged("o.txt");
    output->set_destination(destination);
    output->set_check_owner(checked);
  }

  Site site_;
  wire::Start start_;
  std::map<std::string, std::string> brought_{{"/home/me/in.wav", "/scratch/hb/files/ab/H/in.wav"}};
};

TEST_F(SiteViewTest, FilesThatAreNotSeenAreBroughtOnceEach) {
  for (const char* input : {"/home/me/in.wav", "/archive/b", "/home/me/in.wav"})
    start_.add_inputs(input);
  start_.set_standard_input("/home/me/stdin");
  start_.set_container("/images/tool.sif");
  EXPECT_EQ(files_to_stage_in(start_, site_),
            (std::vector<std::string>{"/home/me/in.wav", "/home/me/stdin", "/images/tool.sif"}));
  start_.set_container("docker://tool");
  EXPECT_EQ(files_to_stage_in(start_, site_).size(), 2U);
}

TEST_F(SiteViewTest, ACommandNamesItsInputsAsTheSiteDoes) {
  start_.add_inputs("/home/me/in.wav");
  start_.add_inputs("/archive/b");
  for (const char* argument : {"/home/me/in.wav", "--in=/home/me/in.wav,/archive/b",
                               "/home/me/in.wav.bak", "/home/me/in.wav/x", "it is /archive/b!",
                               "-i/archive/b", "http://host/archive/b", "/scratch/archive/b"})
    start_.add_argv(argument);
  wire::Variable* variable = start_.add_variables();
  variable->set_name("INPUT");
  variable->set_value("/archive/b:/archive/bc");
  EXPECT_FALSE(show());
  EXPECT_EQ(start_.inputs(0), "/scratch/hb/files/ab/H/in.wav");
  EXPECT_EQ(start_.inputs(1), "/gpfs/archive/b");
  EXPECT_EQ(start_.argv(1), "/scratch/hb/files/ab/H/in.wav");
  EXPECT_EQ(start_.argv(2), "--in=/scratch/hb/files/ab/H/in.wav,/gpfs/archive/b");
  EXPECT_EQ(start_.argv(3), "/home/me/in.wav.bak");
  EXPECT_EQ(start_.argv(4), "/home/me/in.wav/x");
  EXPECT_EQ(start_.argv(5), "it is /gpfs/archive/b!");
  EXPECT_EQ(start_.argv(6), "-i/gpfs/archive/b");
  EXPECT_EQ(start_.argv(7), "http://host/archive/b");
  EXPECT_EQ(start_.argv(8), "/scratch/archive/b");
  EXPECT_EQ(start_.variables(0).value(), "/gpfs/archive/b:/archive/bc");
}

TEST_F(SiteViewTest, WhatWasNotBroughtIsSaid) {
  start_.add_inputs("/home/me/other");
  const auto refusal = show();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(*refusal, "its input /home/me/other was not staged in at site far");
}

TEST_F(SiteViewTest, AnUnseenDirectoryAndEnvironmentAreLeftBehind) {
  start_.set_directory("/home/me");
  start_.set_environment(7);
  EXPECT_FALSE(show());
  EXPECT_EQ(start_.directory(), "");
  EXPECT_EQ(start_.environment(), 0U);
  EXPECT_FALSE(start_.stage_out());

  start_.set_directory("/archive/run");
  EXPECT_FALSE(show());
  EXPECT_EQ(start_.directory(), "/gpfs/archive/run");
}

TEST_F(SiteViewTest, OutputsThatAreSeenAreMovedThereByThePilot) {
  add_output("/archive/out.txt", true);
  EXPECT_FALSE(show());
  EXPECT_EQ(start_.outputs(0).destination(), "/gpfs/archive/out.txt");
  EXPECT_TRUE(start_.outputs(0).check_owner());
  EXPECT_FALSE(start_.stage_out());
}

TEST_F(SiteViewTest, OneUnseenOutputMakesAllOfThemWaitForTheEngine) {
  add_output("/archive/out.txt", true);
  add_output("/home/me/out.txt", true);
  const auto fetched = outputs_to_fetch(start_, {0, 1});
  ASSERT_EQ(fetched.size(), 2U);
  EXPECT_EQ(fetched[0].staged(), "0");
  EXPECT_EQ(fetched[0].destination(), "/archive/out.txt");
  EXPECT_TRUE(fetched[0].check_owner());
  EXPECT_EQ(fetched[1].staged(), "1");
  EXPECT_FALSE(show());
  EXPECT_TRUE(start_.stage_out());
  EXPECT_EQ(start_.outputs(0).destination(), "/scratch/hb/out/x/0");
  EXPECT_EQ(start_.outputs(0).staged(), "o.txt");
  EXPECT_FALSE(start_.outputs(0).check_owner());
  EXPECT_EQ(start_.outputs(1).destination(), "/scratch/hb/out/x/1");
}

TEST_F(SiteViewTest, StreamsToUnseenFilesAreOutputs) {
  start_.set_standard_output("/home/me/log");
  start_.set_standard_error("/home/me/log");
  EXPECT_FALSE(show());
  ASSERT_EQ(start_.outputs_size(), 1);
  EXPECT_EQ(start_.standard_output(), start_.standard_error());
  EXPECT_EQ(start_.standard_output(), start_.directory_token() + "/" + start_.outputs(0).staged());
  EXPECT_TRUE(start_.stage_out());
}

TEST_F(SiteViewTest, AnOutputKeepsItsPlaceThoughTheSiteSeesOthersByNow) {
  add_output("/home/me/out.txt");
  start_.set_standard_output("/archive/said");
  start_.set_standard_error("/home/me/complained");
  const wire::Start recipe = start_;
  EXPECT_FALSE(show());
  ASSERT_EQ(start_.outputs_size(), 2);
  EXPECT_EQ(start_.outputs(1).name(), "stderr");
  EXPECT_EQ(start_.outputs(1).place(), 2U);
  EXPECT_EQ(start_.outputs(1).destination(), "/scratch/hb/out/x/2");
  const auto fetched = outputs_to_fetch(recipe, {0, 2});
  ASSERT_EQ(fetched.size(), 2U);
  EXPECT_EQ(fetched[1].staged(), "2");
  EXPECT_EQ(fetched[1].destination(), "/home/me/complained");
  EXPECT_EQ(outputs_to_fetch(recipe, {1}).front().destination(), "/archive/said");
}

TEST_F(SiteViewTest, ASiteThatSeesEverythingIsToldTheSame) {
  site_.path_map = everything_shared();
  start_.add_inputs("/home/me/in.wav");
  start_.set_directory("/home/me");
  start_.set_environment(7);
  start_.set_standard_output("/home/me/log");
  add_output("/home/me/out.txt");
  const wire::Start before = start_;
  EXPECT_TRUE(files_to_stage_in(start_, site_).empty());
  EXPECT_FALSE(show());
  EXPECT_EQ(start_.SerializeAsString(), before.SerializeAsString());
}

}  // namespace
}  // namespace hpcbatch
