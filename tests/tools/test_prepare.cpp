// A request becomes a task: what is filled in, what wins over what, what is refused.
#include "documents/view.hpp"
#include "hpcbatch/input_facts.hpp"
#include "tools/prepare.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace hpcbatch {
namespace {

/// Shows in its argv what it was given, and behaves as told.
class EchoTool : public Tool {
 public:
  ToolDescription describe() const override { return {}; }
  void validate(const ToolRequest&) const override {
    if (throws_oddly) throw 7;
    if (!complaint.empty()) throw std::runtime_error(complaint);
  }
  ToolTask render(const ToolRequest& request) const override {
    ToolTask task;
    if (renders_nothing) return task;
    task.argv.push_back("echo");
    for (const auto& [name, value] : request.parameters)
      task.argv.push_back(fmt::format("{}={}", name, value));
    for (const auto& [name, files] : request.inputs) {
      for (const auto& file : files) task.argv.push_back(fmt::format("{}<{}", name, file.path));
    }
    for (const auto& [name, path] : request.outputs)
      task.argv.push_back(fmt::format("{}>{}", name, path));
    task.needs = needs;
    task.environment = environment;
    return task;
  }

  std::string complaint;
  bool throws_oddly{false};
  bool renders_nothing{false};
  ToolNeeds needs;
  std::map<std::string, std::string> environment;
};

constexpr const char* kTool = R"(tool: t
parameters:
  model: {default: large}
  level: {type: integer, default: 6}
inputs:
  input: {}
  others: {type: files, optional: true}
outputs:
  segments: {file: out.tsv}
  notes: {optional: true}
resources: {cpus: 1 + others.count, memory: 1G + input.size, gpus: 1}
environment: {MODEL: "{model} of {tool_dir}", SHARED: file}
container: "{model}.sif"
command: [a]
)";

struct PrepareTest : testing::Test {
  ToolFile tool = parse_tool(kTool, "/tools/t.yaml");
  EchoTool plugin;
  ToolCall call{.tool = "t",
                .parameters = {},
                .inputs = {{"input", {{"/in/a.wav", 1024, {}}}}},
                .outputs = {{"segments", "/out/a.tsv"}}};
  std::map<std::string, std::string> defaults;

  Result<RenderedTask> prepared() const { return prepare(tool, plugin, call, defaults, "@DIR@"); }
  std::string refusal() const {
    const auto result = prepared();
    return result ? "accepted" : result.error().text;
  }
};

TEST_F(PrepareTest, FillsIn) {
  const auto result = prepared();
  ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ(
      result->task.argv,
      (std::vector<std::string>{"echo", "level=6", "model=large", "tool_dir=/tools",
                                "input</in/a.wav", "notes>@DIR@/notes", "segments>@DIR@/out.tsv"}));
  EXPECT_EQ(result->task.environment.at("MODEL"), "large of /tools");
  EXPECT_EQ(result->task.container, "large.sif");
  EXPECT_EQ(show(result->needs), "1 cpu, 1 gpu of any kind, 1.0G memory");
  ASSERT_EQ(result->outputs.size(), 2U);
  EXPECT_EQ(result->outputs[0], (RenderedOutput{"segments", "out.tsv", "/out/a.tsv", false}));
  EXPECT_EQ(result->outputs[1], (RenderedOutput{"notes", "notes", "", true}));
  ASSERT_EQ(result->inputs.size(), 1U);
}

TEST_F(PrepareTest, FillsInWhatAContainerShows) {
  std::string text = kTool;
  const std::string plain = "container: \"{model}.sif\"\n";
  text.replace(text.find(plain), plain.size(),
               "container: {image: \"{model}\", binds: [\"{tool_dir}/data:/data:ro\"], network: "
               "none, gpu: true, environment: {M: \"{model}\"}}\n");
  tool = parse_tool(text, "/tools/t.yaml");
  const auto result = prepared();
  ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ(result->task.container, "large");
  EXPECT_EQ(result->container_terms, (ContainerTerms{.binds = {{"/tools/data", "/data", true}},
                                                     .no_network = true,
                                                     .gpus = true,
                                                     .keeps_entrypoint = false,
                                                     .variables = {{"M", "large"}},
                                                     .runtime = ""}));
  tool.container_terms.binds = {{"{model}", "/x", false}};
  EXPECT_EQ(refusal(),
            "cannot use tool t: 'large' cannot be shown in the container: it must be an absolute "
            "path without ':' and ','");
}

TEST_F(PrepareTest, TheRequestWinsOverTheConfigurationWinsOverTheFile) {
  defaults = {{"model", "medium"}, {"level", "7"}};
  call.parameters = {{"model", "small"}};
  const auto result = prepared();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->task.argv[1], "level=7");
  EXPECT_EQ(result->task.argv[2], "model=small");
}

TEST_F(PrepareTest, ThePluginWinsOverTheFile) {
  plugin.needs.time = std::chrono::seconds{90};
  plugin.needs.gpus = {{"a100", 2}};
  plugin.environment = {{"SHARED", "plugin"}};
  call.inputs["others"] = {{"/in/b", 1, {}}, {"/in/c", 1, {}}};
  const auto result = prepared();
  ASSERT_TRUE(result);
  EXPECT_EQ(show(result->needs), "3 cpus, 2 a100, 1.0G memory, 1m30s");
  EXPECT_EQ(result->task.environment.at("SHARED"), "plugin");
}

TEST_F(PrepareTest, ValuesAreNotLookedAtAgain) {
  call.parameters = {{"model", "{tool_dir} $(x) <<y>>"}};
  const auto result = prepared();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->task.container, "{tool_dir} $(x) <<y>>.sif");
}

TEST_F(PrepareTest, RefusesWhatTheFileDoesNotDeclare) {
  call.parameters = {{"modle", "x"}};
  EXPECT_EQ(refusal(), "cannot use tool t: it has no parameter 'modle'; did you mean 'model'?");
  call.parameters = {{"level", "high"}};
  EXPECT_EQ(refusal(), "cannot use tool t: parameter 'level' must be a whole number, not 'high'");
  call.parameters = {};
  call.inputs["inptu"] = {};
  EXPECT_EQ(refusal(), "cannot use tool t: it has no input 'inptu'; did you mean 'input'?");
  call.inputs.erase("inptu");
  defaults = {{"colour", "red"}};
  EXPECT_EQ(refusal(),
            "cannot use tool t: it has no parameter (the configuration gives it a default) "
            "'colour'; known are model, "
            "level");
}

TEST_F(PrepareTest, RefusesWhatIsMissing) {
  call.outputs = {};
  EXPECT_EQ(refusal(), "cannot use tool t: output 'segments' must be given a destination");
  call.inputs = {};
  EXPECT_EQ(refusal(), "cannot use tool t: input 'input' must be given");
}

TEST_F(PrepareTest, RefusesPathsThatCollide) {
  call.outputs = {{"segments", "/out/x"}, {"notes", "/out/./x"}};
  EXPECT_EQ(refusal(),
            "cannot use tool t: output 'notes' and output 'segments' are the same file: /out/x");
  call.outputs = {{"segments", "/in/../in/a.wav"}};
  EXPECT_EQ(refusal(),
            "cannot use tool t: output 'segments' and input 'input' are the same file: /in/a.wav");
  call.outputs = {{"segments", "out.tsv"}};
  EXPECT_EQ(refusal(),
            "cannot use tool t: output 'segments' must be an absolute path, not 'out.tsv'");
}

/// Knows two facts; the last letter of a file's name is its length.
class FactTool final : public EchoTool, public InputFacts {
 public:
  std::vector<FactDescription> facts() const override {
    return {{"seconds", FactDescription::OfMany::Sum}, {"width", FactDescription::OfMany::Largest}};
  }
  std::map<std::string, double> facts_of(const InputFile& file) const override {
    asked.push_back(file.path);
    if (file.path.ends_with("x")) throw std::runtime_error(file.path + " is no recording");
    if (file.path.ends_with("-")) return {{"seconds", -1}, {"width", 1}};
    if (file.path.ends_with("?")) return {{"width", 1}};
    const double value = file.path.back() - '0';
    return {{"seconds", value}, {"width", value}};
  }
  mutable std::vector<std::string> asked;
};

struct FactsTest : testing::Test {
  FactTool plugin;
  std::string said(const std::string& resources, std::vector<InputFile> files = {{"/a1", 1, {}}}) {
    const ToolFile tool = parse_tool(
        "tool: t\nplugin: media\ninputs: {in: {type: files, optional: true}}\n"
        "resources: {" +
            resources + "}\ncommand: [a]\n",
        "/t.yaml");
    ToolCall call{.tool = "t", .parameters = {}, .inputs = {}, .outputs = {}};
    if (!files.empty()) call.inputs["in"] = std::move(files);
    const auto result = prepare(tool, plugin, call, {}, "@DIR@");
    return result ? show(result->needs) : result.error().text;
  }
};

TEST_F(FactsTest, AmountsDependOnThem) {
  EXPECT_EQ(said("time: 1m + in.seconds * 10s"), "1 cpu, 1m10s");
  EXPECT_EQ(said("time: 1m + in.seconds * 10s, cpus: in.width",
                 {{"/a3", 1, {}}, {"/a1", 1, {}}, {"/a2", 1, {}}}),
            "3 cpus, 2m");
  EXPECT_EQ(said("time: 1m + in.seconds * 10s", {}), "1 cpu, 1m") << "0 of what is not given";
  plugin.asked.clear();
  EXPECT_EQ(said("time: 1m + in.size"), "1 cpu, 1m1s");
  EXPECT_TRUE(plugin.asked.empty()) << "only what is wanted is looked at";
}

TEST_F(FactsTest, WhatThePluginDoesNotKnowIsRefusedWithItsPlace) {
  EXPECT_EQ(
      said("time: 1m + in.secnds"),
      "cannot use tool t: /t.yaml:4: 'time' uses 'in.secnds', and what its plugin media tells of "
      "an input is size, count, seconds, width; did you mean 'seconds'?");
  EXPECT_TRUE(plugin.asked.empty());
  const EchoTool without;
  const ToolFile tool = parse_tool(
      "tool: t\nplugin: mine\ninputs: {in: {}}\nresources: {time: in.seconds}\n", "/t.yaml");
  EXPECT_THROW(check_facts(tool, without), std::runtime_error);
  EXPECT_THROW(
      (void)parse_tool("tool: t\ninputs: {in: {}}\nresources: {time: in.seconds}\ncommand: [a]\n",
                       "/t.yaml"),
      DocumentError)
      << "one that is a command has none";
}

TEST_F(FactsTest, WhatThePluginCannotTellIsRefused) {
  EXPECT_EQ(said("time: 1m + in.seconds", {{"/a1", 1, {}}, {"/x", 1, {}}}),
            "cannot use tool t: /x is no recording");
  EXPECT_EQ(said("time: 1m + in.seconds", {{"/-", 1, {}}}),
            "cannot use tool t: its plugin says that seconds of /- is -1; mend the plugin");
  EXPECT_EQ(said("time: 1m + in.seconds", {{"/?", 1, {}}}),
            "cannot use tool t: its plugin says that seconds of /? is nan; mend the plugin");
}

TEST_F(PrepareTest, WhatAPluginThrowsBecomesAnError) {
  plugin.complaint = "no such model";
  EXPECT_EQ(refusal(), "cannot use tool t: no such model");
  plugin.complaint = "";
  plugin.throws_oddly = true;
  EXPECT_EQ(refusal(),
            "cannot use tool t: its plugin command threw something that is no std::exception");
  plugin.throws_oddly = false;
  plugin.renders_nothing = true;
  EXPECT_EQ(refusal(), "cannot use tool t: its plugin command rendered an empty command");
  plugin.renders_nothing = false;
  plugin.needs.cpus = -1;
  EXPECT_EQ(refusal(), "cannot use tool t: its plugin asks for an amount that no machine has");
}

}  // namespace
}  // namespace hpcbatch
