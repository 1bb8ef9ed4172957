// Which sites a task may use by what they see of its files.
#include "api/make/far_sites.hpp"

#include "api/read/read_request.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

class FarSitesTest : public ::testing::Test {
 protected:
  FarSitesTest() {
    here_.name = "here";
    far_.name = "far";
    far_.path_map = {};
    half_.name = "half";
    half_.path_map = {{"/data", "/gpfs"}};
  }
  Needs note(const std::vector<std::string>& shared = {},
             const std::vector<std::string>& items = {}, Needs needs = {}) {
    note_far_sites({&here_, &far_, &half_}, recipe_, items, shared, needs);
    return needs;
  }
  using Names = std::vector<std::string>;

  Site here_, far_, half_;
  Recipe recipe_;
};

TEST_F(FarSitesTest, ATaskWithoutFilesGoesAnywhere) {
  recipe_.directory = "/home/me";
  recipe_.container = "docker://tool";
  EXPECT_EQ(note(), Needs{});
}

TEST_F(FarSitesTest, FilesAreBroughtWhereTheyAreNotSeen) {
  recipe_.inputs = {"/data/a"};
  EXPECT_EQ(note().staged_to, Names{"far"});
  recipe_.outputs = {{"o", "o", "/home/me/o", std::nullopt, false}};
  EXPECT_EQ(note().staged_to, (Names{"far", "half"}));
  EXPECT_FALSE(note().own_files);
  EXPECT_TRUE(note().not_on.empty());
}

TEST_F(FarSitesTest, ItemsGiveEachTaskFilesOfItsOwn) {
  recipe_.filled = Filled::Items;
  recipe_.inputs = {"{}"};
  EXPECT_EQ(note({}, {"/data/a", "/data/b"}).staged_to, Names{"far"});
  EXPECT_EQ(note({}, {"/data/a", "/home/b"}).staged_to, (Names{"far", "half"}));
  EXPECT_TRUE(note({}, {"/data/a"}).own_files);
  recipe_.inputs = {"/data/common"};
  recipe_.outputs = {{"o", "o", "/data/{}", std::nullopt, false}};
  EXPECT_FALSE(note({}, {"a"}).own_files);
}

TEST_F(FarSitesTest, StreamsAndImagesAreFilesToo) {
  recipe_.standard_output = "/home/me/log";
  EXPECT_EQ(note().staged_to, (Names{"far", "half"}));
  recipe_.standard_output.clear();
  recipe_.container = "/data/tool.sif";
  EXPECT_EQ(note().staged_to, Names{"far"});
}

TEST_F(FarSitesTest, AFolderThatMustBeSharedKeepsATaskAwayFromOthers) {
  EXPECT_EQ(note({"/data/run"}).not_on, (Names{"far", "half"}));  // there it is called /gpfs/run
  half_.path_map = {{"/data", "/data"}};
  EXPECT_EQ(note({"/data/run"}).not_on, Names{"far"});
  EXPECT_EQ(note({"/home/me"}).not_on, (Names{"far", "half"}));
}

TEST_F(FarSitesTest, WhereNoSiteSeesItNothingIsTaken) {
  Needs needs;
  needs.site = "far";
  try {
    note({"/home/me"}, {}, needs);
    FAIL();
  } catch (const BadRequest& e) {
    EXPECT_STREQ(e.what(),
                 "no site that the task may run on sees /home/me; a site's 'path_map' says what it "
                 "sees");
  }
}

}  // namespace
}  // namespace hpcbatch
