// Images kept for a site, with programs that only seem to pull.
#include "pilot/images/image_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kPodman = R"(#!/bin/sh
echo "$1" >> "$CALLS"
case $1 in
  pull) echo 888332082a0c7c7d492700cff2c1e9048f1fa601a6aab7c12c4be9ee729dbfeb ;;
  save) while [ "$1" != --output ]; do shift; done; head -c 100000 /dev/zero > "$2" ;;
esac
)";

struct ImageCacheTest : testing::Test {
  ImageCacheTest() {
    char name[] = "/tmp/hpcbatch-images-XXXXXX";
    root = ::mkdtemp(name);
    write("podman", kPodman);
    ::chmod((root + "/podman").c_str(), 0755);
  }
  ~ImageCacheTest() override { shell("rm -rf " + root); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root + "/" + name) << text;
  }
  std::string contents(const std::string& name) const {
    std::ifstream file(root + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool is_there(const std::string& name) const {
    struct stat info {};
    return ::lstat((root + "/" + name).c_str(), &info) == 0;
  }
  static void shell(const std::string& words) { ASSERT_EQ(std::system(words.c_str()), 0) << words; }
  ImageAnswer prepared(const std::string& image, std::uint64_t limit = 1U << 30) const {
    return prepare_image({.runtime = {Runtime::Podman, root + "/podman"},
                          .image = image_of(image, root, {}),
                          .cache = root + "/made/images",
                          .limit = limit,
                          .environment = {"PATH=/usr/bin:/bin", "CALLS=" + root + "/calls"}});
  }
  void was_used(const std::string& kept, time_t seconds_ago) const {
    shell("touch -c -d @" + std::to_string(std::time(nullptr) - seconds_ago) + " " + root +
          "/made/images/" + kept + "*.used");
  }

  std::string root;
};

TEST_F(ImageCacheTest, IsFilledOnceAndLoadedByEachNode) {
  const ImageAnswer first = prepared("debian:12");
  EXPECT_EQ(first.said, ImageAnswer::Said::Ready) << first.text;
  EXPECT_TRUE(first.text.starts_with("888332"));
  EXPECT_EQ(prepared("debian:12").text, first.text);
  EXPECT_EQ(contents("calls"), "pull\nsave\npull\npull\n") << "pulled, saved; loaded twice";
}

TEST_F(ImageCacheTest, KeepsWithinItsSize) {
  prepared("a");
  prepared("b");
  was_used("a-", 7200);
  was_used("b-", 3600);
  prepared("c", 250'000);
  shell("test ! -e " + root + "/made/images/a-*");
  shell("test -e " + root + "/made/images/b-*.tar -a -e " + root + "/made/images/c-*.tar");
  prepared("d", 1);
  shell("test ! -e " + root + "/made/images/b-*");
  shell("test -e " + root + "/made/images/c-*.tar");
}

TEST_F(ImageCacheTest, IsNotWhereOthersCanPutImages) {
  shell("mkdir " + root + "/made && chmod 777 " + root + "/made");
  const ImageAnswer answer = prepared("debian:12");
  EXPECT_EQ(answer.said, ImageAnswer::Said::Transient);
  EXPECT_THAT(answer.text, testing::HasSubstr(root + "/made (of user"));
  EXPECT_EQ(contents("calls"), "") << "nothing is pulled";
  shell("chmod 755 " + root + "/made");
  EXPECT_EQ(prepared("debian:12").said, ImageAnswer::Said::Ready);
}

TEST_F(ImageCacheTest, SaysWhatTheProgramSaid) {
  write("podman", "#!/bin/sh\necho trying\necho 'Error: manifest unknown'\nexit 125\n");
  const ImageAnswer answer = prepared("none");
  EXPECT_EQ(answer.said, ImageAnswer::Said::Missing);
  EXPECT_EQ(answer.text, "cannot pull the image none: Error: manifest unknown");
  EXPECT_EQ(image_answer(to_text(answer)).text, answer.text);
  EXPECT_EQ(image_answer("").said, ImageAnswer::Said::Transient);
}

TEST_F(ImageCacheTest, ALockIsTakenFromWhoGivesNoSignOfLife) {
  const std::string path = root + "/lock";
  PullLock first(path);
  EXPECT_TRUE(first.take());
  {
    PullLock second(path);
    EXPECT_FALSE(second.take());
    EXPECT_EQ(errno, EEXIST);
  }
  EXPECT_TRUE(is_there("lock")) << "only its holder removes it";
  shell("touch -d '2 minutes ago' " + path);
  first.renew();
  EXPECT_FALSE(PullLock(path).take());
  shell("touch -d '2 minutes ago' " + path);
  PullLock third(path);
  EXPECT_TRUE(third.take());
  PullLock nowhere(root + "/none/lock");
  EXPECT_FALSE(nowhere.take());
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace hpcbatch::pilot
