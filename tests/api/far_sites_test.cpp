// Which sites a task may use by what they see of its files.
#include "api/make/submitted_files.hpp"

#include "api/read/read_request.hpp"
#include "wire/wire.pb.h"

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
    note_far_sites({&here_, &far_, &half_}, start_, {filled_, items}, shared, needs);
    return needs;
  }
  using Names = std::vector<std::string>;

  Site here_, far_, half_;
  wire::Start start_;
  Filled filled_{Filled::Nothing};
};

TEST_F(FarSitesTest, ATaskWithoutFilesGoesAnywhere) {
  start_.set_directory("/home/me");
  start_.set_container("docker://tool");
  EXPECT_EQ(note(), Needs{});
}

TEST_F(FarSitesTest, FilesAreBroughtWhereTheyAreNotSeen) {
  start_.add_inputs("/data/a");
  EXPECT_EQ(note().staged_to, Names{"far"});
  add_output(start_, "o", "o", "/home/me/o", false);
  EXPECT_EQ(note().staged_to, (Names{"far", "half"}));
  EXPECT_FALSE(note().own_files);
  EXPECT_TRUE(note().not_on.empty());
}

TEST_F(FarSitesTest, ItemsGiveEachTaskFilesOfItsOwn) {
  filled_ = Filled::Items;
  start_.add_inputs("{}");
  EXPECT_EQ(note({}, {"/data/a", "/data/b"}).staged_to, Names{"far"});
  EXPECT_EQ(note({}, {"/data/a", "/home/b"}).staged_to, (Names{"far", "half"}));
  EXPECT_TRUE(note({}, {"/data/a"}).own_files);
  start_.set_inputs(0, "/data/common");
  add_output(start_, "o", "o", "/data/{}", false);
  EXPECT_FALSE(note({}, {"a"}).own_files);
}

TEST_F(FarSitesTest, StreamsAndImagesAreFilesToo) {
  start_.set_standard_output("/home/me/log");
  EXPECT_EQ(note().staged_to, (Names{"far", "half"}));
  start_.clear_standard_output();
  start_.set_container("/data/tool.sif");
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
