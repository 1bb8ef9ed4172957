// Finding tools in folders: which hit counts, which files are not trusted, and that those we ship
// are fine.
#include "tools/tool_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hpcbatch {
namespace {

using testing::HasSubstr;

class PlainTool final : public Tool {
 public:
  ToolDescription describe() const override { return {}; }
  void validate(const ToolRequest&) const override {}
  ToolTask render(const ToolRequest&) const override {
    ToolTask task;
    task.argv = {"true"};
    return task;
  }
};

struct ShelfTest : testing::Test {
  ShelfTest() {
    std::string name = testing::TempDir() + "/registry_XXXXXX";
    folder = ::mkdtemp(name.data());
    std::filesystem::create_directories(folder / "first");
    std::filesystem::create_directories(folder / "second");
  }
  ~ShelfTest() override { std::filesystem::remove_all(folder); }

  void write(const std::string& file, const std::string& text) const {
    std::ofstream(folder / file) << text;
  }
  ToolRegistry registry() {
    return ToolRegistry(
        {folder / "first", folder / "second"},
        [this](const std::string& plugin, const std::string&) -> Result<std::shared_ptr<Tool>> {
          opened.push_back(plugin);
          if (plugin != "command")
            return Error{Error::Kind::Rejected, "there is no plugin " + plugin};
          return std::shared_ptr<Tool>(std::make_shared<PlainTool>());
        });
  }

  std::filesystem::path folder;
  std::vector<std::string> opened;
};

TEST_F(ShelfTest, TheFirstFolderWinsAndListingOpensNoPlugin) {
  write("first/a.yaml", "tool: a\nversion: 2\ncommand: [x]\n");
  write("second/a.yaml", "tool: a\nversion: 1\ncommand: [x]\n");
  write("second/b.yaml", "tool: b\nplugin: whisper\n");
  write("second/bad.yaml", "tool: bad\n");
  write("second/readme.txt", "not a tool");
  ToolRegistry registry = this->registry();
  const auto tools = registry.list();
  ASSERT_EQ(tools.size(), 3U);
  EXPECT_EQ(tools[0].tool->version, "2");
  EXPECT_EQ(tools[1].tool->plugin, "whisper");
  EXPECT_EQ(tools[2].tool, nullptr);
  EXPECT_THAT(tools[2].error, HasSubstr("second/bad.yaml:1: 'command' is missing in the tool"));
  EXPECT_TRUE(opened.empty());
}

TEST_F(ShelfTest, OpensAPluginOnceAndAgainWhenTheFileChanges) {
  write("first/a.yaml", "tool: a\ncommand: [x]\n");
  ToolRegistry registry = this->registry();
  const ToolCall call{.tool = "a", .parameters = {}, .inputs = {}, .outputs = {}};
  ASSERT_TRUE(registry.prepare(call, "/d"));
  ASSERT_TRUE(registry.prepare(call, "/d"));
  EXPECT_EQ(opened.size(), 1U);
  write("first/a.yaml", "tool: a\nversion: 2\ncommand: [x]\n");
  ASSERT_TRUE(registry.prepare(call, "/d"));
  EXPECT_EQ(opened.size(), 2U);
  EXPECT_EQ((*registry.find("a"))->version, "2");
}

TEST_F(ShelfTest, SaysWhatIsMissing) {
  write("first/segmenter.yaml", "tool: segmenter\ncommand: [x]\n");
  write("first/b.yaml", "tool: b\nplugin: whisper\n");
  ToolRegistry registry = this->registry();
  EXPECT_THAT(registry.find("segmentre").error().text, HasSubstr("did you mean 'segmenter'?"));
  EXPECT_THAT(registry.check("b").error().text, HasSubstr("there is no plugin whisper"));
  EXPECT_THAT(registry.find("first/segmenter.yaml").error().text,
              HasSubstr("is a file; say the tool's name, 'segmenter'"));
  for (const char* name : {"../first/segmenter", "/etc/passwd", "", ".", "Segmenter", "a b"}) {
    EXPECT_FALSE(registry.find(name)) << name;
  }
}

TEST_F(ShelfTest, RefusesWhatOthersCouldHaveWritten) {
  write("first/a.yaml", "tool: a\ncommand: [x]\n");
  ASSERT_EQ(::chmod((folder / "first/a.yaml").c_str(), 0666), 0);
  ToolRegistry registry = this->registry();
  EXPECT_THAT(registry.find("a").error().text, HasSubstr("everybody"));
  ASSERT_EQ(::chmod((folder / "first/a.yaml").c_str(), 0644), 0);
  EXPECT_TRUE(registry.find("a"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((folder / "first/a.yaml").c_str(), 12345, 0), 0);
    EXPECT_THAT(registry.find("a").error().text, HasSubstr("of user 12345"));
  }
}

TEST(ToolDirectories, EndWithOurOwn) {
  EXPECT_EQ(tool_directories({"/opt/tools"}, "/usr/bin"),
            (std::vector<std::string>{"/opt/tools", "/usr/share/hpcbatch/tools"}));
}

TEST(ShippedTools, CanAllBeRead) {
  ToolRegistry registry(
      {TOOL_TEMPLATES},
      [](const std::string&, const std::string&) -> Result<std::shared_ptr<Tool>> {
        return Error{Error::Kind::Rejected, "not asked for"};
      });
  std::vector<std::string> names;
  for (const auto& listing : registry.list()) {
    EXPECT_TRUE(listing.tool) << listing.error;
    names.push_back(listing.name);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"command", "ina_speech_segmenter",
                                            "ina_speech_segmenter_container", "speech_to_text"}));
  const auto by_size = registry.find("ina_speech_segmenter_by_size");
  const auto needs = evaluate((*by_size)->resources, {{"input.size", 2.0 * 1024 * 1024}});
  ASSERT_TRUE(needs);
  EXPECT_EQ(show(*needs), "1 cpu, 1.6G memory, 4m");
}

}  // namespace
}  // namespace hpcbatch
