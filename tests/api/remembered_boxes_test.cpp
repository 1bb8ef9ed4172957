// The file of remembered drop boxes: whole or the old one, and readable even where a part is
// damaged.
#include "api/dropbox_ports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <signal.h>
#include <sys/resource.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct RememberedBoxesTest : testing::Test {
  RememberedBoxesTest() {
    std::string name = testing::TempDir() + "/hpcbatch_XXXXXX";
    folder = ::mkdtemp(name.data());
    file = folder + "/dropboxes.json";
  }
  ~RememberedBoxesTest() override { std::filesystem::remove_all(folder); }

  std::string folder, file;
  DropboxSettings one{"/box", {}, {"/allow"}, {"/templates"}, {{"k", "v"}}};
};

TEST_F(RememberedBoxesTest, ComeBackAsTheyWere) {
  EXPECT_THAT(read_remembered(file).boxes, IsEmpty());
  EXPECT_THAT(read_remembered(file).warnings, IsEmpty());
  const DropboxSettings two{"/other", {}, {}, {}, {}};
  ASSERT_TRUE(write_remembered(file, {one, two}));
  EXPECT_THAT(read_remembered(file).boxes, ElementsAre(one, two));
  ASSERT_TRUE(write_remembered(file, {}));
  EXPECT_THAT(read_remembered(file).boxes, IsEmpty());
}

TEST_F(RememberedBoxesTest, ADamagedEntryIsToldAndTheOthersAreRead) {
  std::ofstream(file) << R"([{"directory": "/bad"}, 7,
    {"directory": "/box", "allow": ["/allow"], "templates": ["/templates"], "variables": {"k": "v"}}])";
  const RememberedBoxes read = read_remembered(file);
  EXPECT_THAT(read.boxes, ElementsAre(one));
  EXPECT_THAT(read.warnings, ElementsAre(HasSubstr("/bad"), HasSubstr("7")));
  std::ofstream(file) << "[{";
  EXPECT_THAT(read_remembered(file).warnings, ElementsAre(HasSubstr("is damaged")));
}

TEST_F(RememberedBoxesTest, StayAsTheyWereWhereTheyCannotBeWritten) {
  ASSERT_TRUE(write_remembered(file, {one}));
  // Root too may write no more than this.
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit nothing{0, before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &nothing);
  const auto written = write_remembered(file, {});
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_DFL);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().text, HasSubstr("cannot write " + file));
  EXPECT_THAT(read_remembered(file).boxes, ElementsAre(one));
  const std::filesystem::directory_iterator left(std::filesystem::path(file).parent_path());
  EXPECT_EQ(std::distance(begin(left), end(left)), 1) << "nothing half written stays";
}

}  // namespace
}  // namespace hpcbatch
