// The interpreter of tools that are a command in a YAML file.
#include "hpcbatch/contract/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kPack = R"yaml(tool: pack
version: 1.0
summary: Packs files
parameters:
  level: {type: integer, default: 6}
  label: {}
inputs:
  input: {type: file}
  key: {type: file, optional: true}
  more: {type: files, optional: true}
outputs:
  packed: {file: packed.gz}
command: ["{tool_dir}/pack", "--level={level}", "--key={key}", "{{{label}}}", "{more}", "{input}", "{packed}"]
)yaml";

std::unique_ptr<Tool> make(const std::string& text = kPack) {
  return contract::load<Tool>(PLUGINS "/tools/command.so", text);
}

std::string refusal_of(const std::string& text) {
  try {
    make(text);
    return "accepted";
  } catch (const std::exception& e) {
    return e.what();
  }
}

ToolRequest request() {
  return {.tool = "pack",
          .parameters = {{"level", "9"}, {"label", "{level} $(rm -rf ~)"}, {"tool_dir", "/tools"}},
          .inputs = {{"input", {{.path = "/in/a b; rm.wav"}}}},
          .outputs = {{"packed", "/out/packed.gz"}}};
}

TEST(CommandTool, OneEntryIsOneArgumentWhateverItsValueHolds) {
  EXPECT_THAT(make()->render(request()).argv,
              ElementsAre("/tools/pack", "--level=9", "{{level} $(rm -rf ~)}", "/in/a b; rm.wav",
                          "/out/packed.gz"));
}

TEST(CommandTool, AListOfFilesIsOneArgumentEachAndAnOptionalFileMayCome) {
  auto r = request();
  r.inputs["more"] = {{.path = "/in/1"}, {.path = "/in/2"}};
  r.inputs["key"] = {{.path = "/k"}};
  EXPECT_THAT(make()->render(r).argv,
              ElementsAre("/tools/pack", "--level=9", "--key=/k", "{{level} $(rm -rf ~)}", "/in/1",
                          "/in/2", "/in/a b; rm.wav", "/out/packed.gz"));
}

TEST(CommandTool, QuotesForAShellWhatItIsToldToQuote) {
  const auto tool = make(
      "tool: t\nparameters: {word: {}}\ninputs: {input: {}, more: {type: files}}\n"
      "command: [sh, -c, \"cat {more:q} {input:q} {word:raw}\"]\n");
  EXPECT_THAT(tool->render({.tool = "t",
                            .parameters = {{"word", "w x"}, {"tool_dir", "/t"}},
                            .inputs = {{"input", {{.path = "/it's"}}},
                                       {"more", {{.path = "/$(id)"}, {.path = "/b"}}}},
                            .outputs = {}})
                  .argv,
              ElementsAre("sh", "-c", "cat '/$(id)' '/b' '/it'\\''s' w x"));
}

TEST(CommandTool, SaysWhatItIs) {
  EXPECT_EQ(make()->describe().summary, "Packs files");
}

TEST(CommandTool, ABadFileIsRefusedWithItsLine) {
  EXPECT_EQ(refusal_of("tool: a\ninputs: {input: {}}\ncommand:\n  - cat\n  - \"{inptu}\"\n"),
            "line 5: {inptu} is not declared; it must be a parameter, an input or an output");
  EXPECT_THAT(refusal_of("tool: a\ncommand: cat x\n"),
              HasSubstr("line 2: 'command' must be a list"));
  EXPECT_THAT(refusal_of("tool: a\ncommand: []\n"), HasSubstr("must be a list"));
  EXPECT_THAT(refusal_of("tool: a\n"), HasSubstr("'command' is missing"));
  EXPECT_THAT(refusal_of("tool: a\ncommand: [cat, [x]]\n"),
              HasSubstr("line 2: an entry of 'command' must be a text"));
  EXPECT_THAT(refusal_of("tool: a\ncommand: [cat, \"{x\"]\n"), HasSubstr("a brace has no partner"));
  EXPECT_THAT(refusal_of("tool: a\ncommand: [cat, \"x}\"]\n"), HasSubstr("a brace has no partner"));
  EXPECT_THAT(refusal_of("tool: a\ninputs: {f: {type: files}}\ncommand: [cat, \"x={f}\"]\n"),
              HasSubstr("line 3: {f} is a list of files and must be an entry of its own"));
  EXPECT_THAT(refusal_of("just a text"), HasSubstr("must be a map"));
}

ToolRequest without(const std::string& what) {
  auto r = request();
  r.parameters.erase(what);
  r.inputs.erase(what);
  r.outputs.erase(what);
  return r;
}

ToolRequest with_input(const std::string& name, std::vector<InputFile> files) {
  auto r = request();
  r.inputs[name] = std::move(files);
  return r;
}

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(
    Command, ToolContract,
    testing::Values(ToolCase{
        .make = [] { return make(); },
        .good = {request(), with_input("more", {{.path = "/1"}, {.path = "/2"}}),
                 with_input("key", {{.path = "/k"}})},
        .bad = {without("label"), without("input"), without("packed"), with_input("input", {}),
                with_input("input", {{.path = "/1"}, {.path = "/2"}}),
                with_input("level", {{.path = "/1"}}), with_input("unknown", {{.path = "/1"}})}}));
}  // namespace contract
}  // namespace hpcbatch
