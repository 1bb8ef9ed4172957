// What the host says of plugins that are broken, missing or lying where others can write.
#include "plugin_host/plugin_host.hpp"

#include "plugin_host/guarded.hpp"
#include "plugin_host/search_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path kBroken = BROKEN_PLUGINS;

class PluginHostTest : public testing::Test {
 protected:
  std::string refusal_of(const std::string& name) const {
    const auto made = host_.tool(name, "");
    return made ? "it was accepted" : made.error().text;
  }
  PluginHost host_{{kBroken}};
};

TEST_F(PluginHostTest, TakesASoundPlugin) {
  const auto made = host_.tool("sound", "");
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ((*made)->describe().summary, "sound enough");
  EXPECT_EQ((*made)->render({}).argv, std::vector<std::string>{"true"});
}

TEST_F(PluginHostTest, SaysWhatAFileIs) {
  const auto facts = PluginHost::check(kBroken / "tools/sound.so");
  ASSERT_TRUE(facts) << facts.error().text;
  EXPECT_EQ(facts->name, "sound");
  EXPECT_EQ(facts->version, "1");
  EXPECT_EQ(facts->kind, HPCBATCH_KIND_TOOL);
}

TEST_F(PluginHostTest, RefusesAnotherMajor) {
  EXPECT_THAT(refusal_of("abi3"),
              AllOf(HasSubstr("tools/abi3.so"), HasSubstr("ABI 3.0, this engine speaks 2.0")));
}
TEST_F(PluginHostTest, RefusesOneOfWhenTransportsMovedFiles) {
  EXPECT_EQ(
      refusal_of("abi1"),
      "plugin " + (kBroken / "tools/abi1.so").string() +
          " is refused: it was built for plugin ABI 1.1, this engine speaks 2.0; build it again "
          "with this engine's SDK");
}
TEST_F(PluginHostTest, RefusesANewerMinor) {
  EXPECT_THAT(refusal_of("newer"), HasSubstr("ABI 2.9"));
}
TEST_F(PluginHostTest, RefusesAnotherMagic) {
  EXPECT_THAT(refusal_of("magic"), HasSubstr("no descriptor of ours"));
}
TEST_F(PluginHostTest, RefusesAnotherSize) {
  EXPECT_THAT(refusal_of("size"), HasSubstr("8 bytes"));
}
TEST_F(PluginHostTest, RefusesEmptyFields) {
  EXPECT_THAT(refusal_of("nameless"), HasSubstr("empty fields"));
}
TEST_F(PluginHostTest, RefusesAnotherName) {
  EXPECT_THAT(refusal_of("misnamed"), HasSubstr("calls itself 'other'"));
}
TEST_F(PluginHostTest, RefusesTheDebugLibrary) {
  EXPECT_THAT(refusal_of("debugstl"), HasSubstr("/debug'"));
}
TEST_F(PluginHostTest, RefusesTheOldLibrary) {
  EXPECT_THAT(refusal_of("oldabi"), HasSubstr("cxx11=0'"));
}
TEST_F(PluginHostTest, RefusesALibraryThatIsNoPlugin) {
  EXPECT_THAT(refusal_of("notplugin"), HasSubstr("exports no hpcbatch_plugin"));
}
TEST_F(PluginHostTest, RefusesAFileThatIsNoLibrary) {
  EXPECT_THAT(refusal_of("garbage"), HasSubstr("cannot load plugin"));
}
TEST_F(PluginHostTest, RefusesAMissingSymbolWhenLoading) {
  EXPECT_THAT(refusal_of("undef"), AllOf(HasSubstr("undefined symbol"), HasSubstr("not_there")));
}
TEST_F(PluginHostTest, RefusesAnotherKind) {
  const auto made = host_.scheduler("wrongkind", "");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text, HasSubstr("of kind tool, not scheduler"));
}
TEST_F(PluginHostTest, AnEstimatorIsAKindOfItsOwn) {
  const auto made = host_.estimator("toolkind", "");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text, HasSubstr("of kind tool, not estimator"));
  EXPECT_THAT(host_.estimator("sound", "").error().text,
              AllOf(HasSubstr("no estimator plugin 'sound'"), HasSubstr("/estimators")));
}
TEST_F(PluginHostTest, HandsOnWhatAConstructorThrows) {
  EXPECT_EQ(refusal_of("throwctor"), "plugin throwctor: no such model");
  EXPECT_THAT(refusal_of("throwint"), HasSubstr("no std::exception"));
  EXPECT_THAT(refusal_of("silent"), HasSubstr("did not say why"));
}
TEST_F(PluginHostTest, AnExceptionOfACallStopsAtTheHost) {
  const auto made = host_.tool("throwrender", "");
  ASSERT_TRUE(made);
  const auto task = guarded("throwrender", [&] { return (*made)->render({}); });
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().text, "plugin throwrender: no such model");
}

TEST_F(PluginHostTest, AnUnknownNameGetsTheNearestAndTheList) {
  EXPECT_THAT(refusal_of("suond"), AllOf(HasSubstr("no tool plugin 'suond'"),
                                         HasSubstr("did you mean 'sound'?"), HasSubstr("abi1")));
  EXPECT_THAT(refusal_of("something_else"), testing::Not(HasSubstr("did you mean")));
}

TEST_F(PluginHostTest, ANameNeverLeavesTheSearchPath) {
  EXPECT_THAT(refusal_of("../tools/sound"), HasSubstr("there is no tool plugin"));
}

/// A directory of our own into which a sound plugin is copied.
class PluginFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "plugins-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::filesystem::create_directory(root_ / "tools");
    ::chmod((root_ / "tools").c_str(), 0755);
    std::filesystem::copy_file(kBroken / "tools/sound.so", plugin());
    ::chmod(plugin().c_str(), 0755);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::filesystem::path plugin() const { return root_ / "tools/sound.so"; }
  /// With a group that is nobody's own, as only root can.
  static void share(const std::filesystem::path& path) {
    constexpr gid_t kDaemon = 1;
    ASSERT_EQ(::chown(path.c_str(), ::getuid(), kDaemon), 0) << "this test needs root";
    ASSERT_EQ(::chmod(path.c_str(), 0775), 0);
  }
  std::string answer() const {
    const auto made = PluginHost({root_}).tool("sound", "");
    return made ? "accepted" : made.error().text;
  }
  std::filesystem::path root_;
};

TEST_F(PluginFolderTest, IsAcceptedAsItIs) {
  EXPECT_EQ(answer(), "accepted");
}

TEST_F(PluginFolderTest, AFileThatOthersCanWriteIsRefusedUnread) {
  ::chmod(plugin().c_str(), 0757);
  EXPECT_THAT(answer(),
              AllOf(HasSubstr("everybody"), HasSubstr("chmod go-w " + plugin().string())));
}

TEST_F(PluginFolderTest, AFileThatItsGroupCanWriteIsRefused) {
  share(plugin());
  EXPECT_THAT(answer(), AllOf(HasSubstr("the members of group"),
                              HasSubstr("chmod go-w " + plugin().string())));
}

TEST_F(PluginFolderTest, TheGroupOfItsOwnerAloneMayWrite) {
  // As pip installs under the umask 002 that many systems give their users.
  const passwd* us = ::getpwuid(::getuid());
  const group* ours = us == nullptr ? nullptr : ::getgrgid(us->pw_gid);
  ASSERT_TRUE(ours != nullptr && std::string(ours->gr_name) == us->pw_name)
      << "this test needs a user with a group of his own, as root is";
  for (const auto& path : {plugin(), plugin().parent_path()}) {
    ASSERT_EQ(::chown(path.c_str(), ::getuid(), us->pw_gid), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0775), 0);
  }
  EXPECT_EQ(answer(), "accepted");
}

TEST_F(PluginFolderTest, ADirectoryThatOthersCanWriteIsRefused) {
  ::chmod((root_ / "tools").c_str(), 0777);
  EXPECT_THAT(answer(),
              AllOf(HasSubstr((root_ / "tools").string() + " (of"), HasSubstr("everybody")));
}

TEST_F(PluginFolderTest, AFolderAboveThatOthersCanWriteIsRefused) {
  ::chmod(root_.c_str(), 0777);
  EXPECT_THAT(answer(),
              AllOf(HasSubstr(root_.string() + " (of"), HasSubstr("chmod o-w " + root_.string())));
  ::chmod(root_.c_str(), 01777);  // as /tmp: nobody renames what is another's
  EXPECT_EQ(answer(), "accepted");
}

TEST_F(PluginFolderTest, AFolderAboveTheRealPlaceOfALinkIsLookedAt) {
  const std::filesystem::path open = root_ / "open";
  std::filesystem::create_directory(open);
  std::filesystem::rename(root_ / "tools", open / "tools");
  std::filesystem::create_symlink(open / "tools", root_ / "tools");
  EXPECT_EQ(answer(), "accepted");
  ::chmod(open.c_str(), 0777);
  EXPECT_THAT(answer(), HasSubstr(open.string() + " (of"));
}

TEST_F(PluginFolderTest, AFileThatIsCutOffIsRefusedInWords) {
  for (const std::uintmax_t size : {0U, 100U, 1000U, 4096U, 8192U, 16384U, 32768U, 65536U}) {
    // What was loaded stays loaded: a new file each time.
    std::filesystem::remove(plugin());
    std::filesystem::copy_file(kBroken / "tools/sound.so", plugin());
    ::chmod(plugin().c_str(), 0755);
    std::filesystem::resize_file(plugin(), size);
    const std::string said = answer();
    // Where only what nobody loads is cut off it is as good as before.
    if (size <= 4096 || said != "accepted") {
      EXPECT_THAT(said, HasSubstr("cannot load plugin " + plugin().string())) << size;
    }
  }
}

TEST_F(PluginFolderTest, AllThatAnUmaskLeftWritableIsNamedAtOnce) {
  std::filesystem::create_directory(root_ / "schedulers");
  std::ofstream(root_ / "schedulers/other.so") << "";
  for (const char* name : {"tools", "schedulers", "schedulers/other.so"}) share(root_ / name);
  share(plugin());
  const std::string said = answer();
  for (const auto& path :
       {plugin(), root_ / "tools", root_ / "schedulers", root_ / "schedulers/other.so"}) {
    EXPECT_THAT(said, HasSubstr(" " + path.string()));
  }
}

TEST_F(PluginFolderTest, ARelativePathIsRefused) {
  const auto facts = PluginHost::check("tools/sound.so");
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().text, HasSubstr("not absolute"));
}

TEST_F(PluginFolderTest, AnotherUsersFileOrDirectoryIsRefused) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown((root_ / "tools").c_str(), 65534, 65534), 0);
  EXPECT_THAT(answer(), HasSubstr((root_ / "tools").string() + " (of user 65534"));
}

TEST_F(PluginFolderTest, TheFirstDirectoryWinsAndTheHiddenFileIsNamed) {
  const auto found = find_plugins({root_, kBroken}, HPCBATCH_KIND_TOOL);
  const auto sound =
      std::find_if(found.begin(), found.end(), [](const auto& f) { return f.name == "sound"; });
  ASSERT_NE(sound, found.end());
  EXPECT_EQ(sound->path, plugin());
  EXPECT_EQ(sound->hidden, std::vector<std::filesystem::path>{kBroken / "tools/sound.so"});
}

TEST(SearchPath, ConfigurationThenEnvironmentThenProgram) {
  const auto path = plugin_search_path({"/a"}, "/b::/c", "/opt/x/bin/hpcbatch");
  EXPECT_EQ(path, (std::vector<std::filesystem::path>{"/a", "/b", "/c", "/opt/x/lib/hpcbatch",
                                                      "/opt/x/libexec/hpcbatch"}));
}

}  // namespace
}  // namespace hpcbatch
