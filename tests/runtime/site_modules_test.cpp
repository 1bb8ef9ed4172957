// What is read of a site's environment modules.
#include "sites/site_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::optional<Modules> read(const std::string& text) {
  return read_modules(CommandOutput{.standard_output = text});
}

TEST(SiteModules, AreReadFromLmod) {
  const auto modules = read(
      "Welcome!\nhbbegin\n/apps/modules/all:\napptainer/\napptainer/1.2.5\napptainer/"
      "1.3.1(default)\n"
      "CUDA/12.1.1\n/apps/modules/more:\nCUDA/12.1.1\nzlib/1.3(L)\nhbend\n");
  ASSERT_TRUE(modules);
  EXPECT_THAT(modules->names,
              ElementsAre("apptainer/1.2.5", "apptainer/1.3.1", "CUDA/12.1.1", "zlib/1.3"));
}

TEST(SiteModules, AreReadFromEnvironmentModules) {
  const auto modules = read(
      "hbbegin\n/usr/share/modules/modulefiles:\ndot\nmodule-git\nnull\n--- a note of the site "
      "---\nhbend\n");
  ASSERT_TRUE(modules);
  EXPECT_THAT(modules->names, ElementsAre("dot", "module-git", "null"));
}

TEST(SiteModules, NoneHalfAnAnswerAndNoAnswerAreTold) {
  EXPECT_FALSE(read("hbnone\n")->has_command);
  EXPECT_FALSE(read("hbbegin\ngcc/12\n"));
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read_modules(CommandOutput{.exit_code = -1, .timed_out = true}));
}

TEST(SiteModules, WhatTasksMayWantIsShownFirst) {
  Modules modules{.has_command = true};
  for (int i = 0; i < 20; ++i) modules.names.push_back("lib" + std::to_string(i) + "/1");
  modules.names.emplace_back("CUDA/12.1.1");
  EXPECT_THAT(show_modules(modules), HasSubstr("21: CUDA/12.1.1, lib0/1, "));
  EXPECT_THAT(show_modules(modules), HasSubstr(", ...; what tasks need is loaded in `setup`, as in "
                                               "'module load CUDA/12.1.1'"));
  EXPECT_THAT(show_modules(Modules{}), HasSubstr("no command 'module'"));
  EXPECT_THAT(show_modules(std::nullopt), HasSubstr("could not be listed"));
}

}  // namespace
}  // namespace hpcbatch
