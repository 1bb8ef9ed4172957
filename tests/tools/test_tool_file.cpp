// A tool's file: what is read of it, and what each mistake in it is told.
#include "documents/view.hpp"
#include "tools/tool_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace hpcbatch {
namespace {

const ParameterDeclaration& parameter(const ToolFile& tool, const std::string& name) {
  const auto at = std::find_if(tool.parameters.begin(), tool.parameters.end(),
                               [&](const ParameterDeclaration& p) { return p.name == name; });
  if (at == tool.parameters.end()) throw std::out_of_range(name);
  return *at;
}

TEST(ToolFile, ReadsEverything) {
  const ToolFile tool = parse_tool(R"(tool: t
version: 1.2
summary: Does it
parameters:
  model: {type: string, default: large, choices: [small, large], description: Which}
  level: {type: integer, default: 06}
  plain:
inputs:
  input: {type: file, description: A recording}
  others: {type: files, optional: true}
outputs:
  segments: {file: out.tsv}
  copy: {file: out.tsv, optional: true}
resources:
  cpus: level
  memory: 2G + 3 * input.size
  time: "1:00:00"
  disk: 20G
  gpus: {a100: 1}
  tags: [gpu, amp]
  output_limit: 20M
environment: {DIR: "{tool_dir}", MODEL: "{model}"}
container: "img-{model}.sif"
command: [a, "{input}"]
)",
                                   "/tools/t.yaml");
  EXPECT_EQ(tool.name, "t");
  EXPECT_EQ(tool.version, "1.2");
  EXPECT_EQ(tool.plugin, "command");
  EXPECT_EQ(tool.directory, "/tools");
  ASSERT_EQ(tool.parameters.size(), 3U);
  EXPECT_EQ(parameter(tool, "level").default_value, "06") << "kept as written";
  EXPECT_FALSE(parameter(tool, "plain").default_value);
  EXPECT_TRUE(tool.inputs[1].many);
  EXPECT_TRUE(tool.inputs[1].optional);
  EXPECT_EQ(tool.outputs[0].staged, "out.tsv");
  EXPECT_EQ(tool.outputs[1].staged, "copy-out.tsv");
  EXPECT_EQ(tool.resources.tags, (std::vector<std::string>{"amp", "gpu"}));
  EXPECT_EQ(tool.resources.output_limit, std::uint64_t{20} << 20);
  const auto needs = evaluate(tool.resources, {{"level", 6}, {"input.size", 1024}});
  ASSERT_TRUE(needs);
  EXPECT_EQ(show(*needs), "6 cpus, 20G disk, 1 a100, 2.0G memory, 1h, tags amp gpu");
}

TEST(ToolFile, LeavesTheKeysOfAPluginToThePlugin) {
  const ToolFile tool = parse_tool("tool: t\nplugin: whisper\nmodels: [a]\n", "/t.yaml");
  EXPECT_EQ(tool.plugin, "whisper");
  EXPECT_EQ(tool.directory, "/");
}

TEST(ToolFile, KeepsWhichFactsItsPluginIsToTell) {
  const ToolFile tool = parse_tool(
      "tool: t\nplugin: media\ninputs: {in: {}, more: {type: files}}\n"
      "resources:\n  time: 2m + in.seconds * 2\n  gpus: {a100: \"more.frames > in.size ? 2 : 1\"}\n"
      "command: [a]\n",
      "/x/t.yaml");
  ASSERT_EQ(tool.facts.size(), 2U);
  EXPECT_EQ(tool.facts[0].input, "in");
  EXPECT_EQ(tool.facts[0].fact, "seconds");
  EXPECT_EQ(tool.facts[0].place, "/x/t.yaml:5: 'time'");
  EXPECT_EQ(tool.facts[1].input + "." + tool.facts[1].fact, "more.frames");
}

std::string refusal(const std::string& text) {
  try {
    parse_tool(text, "/x/t.yaml");
  } catch (const DocumentError& e) {
    return e.what();
  }
  return "accepted";
}

struct Bad {
  const char* name;
  std::string text;
  std::string says;
};

class BadTool : public testing::TestWithParam<Bad> {};

TEST_P(BadTool, IsToldWhere) {
  EXPECT_EQ(refusal(GetParam().text), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadTool,
    testing::Values(
        Bad{"Empty", "", "/x/t.yaml:1: 'the tool' must be a map (key: value), not empty"},
        Bad{"OtherName", "tool: u\ncommand: [a]\n",
            "/x/t.yaml:1: the tool 'u' must be in a file named u.yaml, not t.yaml"},
        Bad{"NoCommand", "tool: t\n", "/x/t.yaml:1: 'command' is missing in the tool"},
        Bad{"MisspeltKey", "tool: t\ncommand: [a]\nresouces: {}\n",
            "/x/t.yaml:3: unknown key 'resouces' in the tool; did you mean 'resources'?"},
        Bad{"OddType", "tool: t\nparameters:\n  a: {type: int}\ncommand: [a]\n",
            "/x/t.yaml:3: 'type' must be one of string, integer, number, boolean, not 'int'; did "
            "you mean 'integer'?"},
        Bad{"IdleQuotes", "tool: t\ninputs:\n  sound: {}\ncommand: [cat, '\"{sound}\"']\n",
            "/x/t.yaml:4: \"{sound}\" would reach the program with its quotes, which no shell "
            "takes "
            "off here; write {sound}"},
        Bad{"BadDefault",
            "tool: t\nparameters:\n  a:\n    type: integer\n    default: six\ncommand: [a]\n",
            "/x/t.yaml:5: the default of 'a' must be a whole number, not 'six'"},
        Bad{"DefaultNoChoice",
            "tool: t\nparameters:\n  a: {choices: [x, y], default: z}\ncommand: [a]\n",
            "/x/t.yaml:3: the default of 'a' must be one of x, y, not 'z'"},
        Bad{"BadName", "tool: t\ninputs:\n  a-b: {}\ncommand: [a]\n",
            "/x/t.yaml:3: 'a-b' is no name for this; a name is letters, digits and '_', no digit "
            "first"},
        Bad{"ReservedName", "tool: t\ninputs:\n  tool_dir: {}\ncommand: [a]\n",
            "/x/t.yaml:3: 'tool_dir' is a name that every tool has already"},
        Bad{"NameTwice", "tool: t\ninputs:\n  a: {}\noutputs:\n  a: {}\ncommand: [a]\n",
            "/x/t.yaml:5: 'a' is already the name of a parameter, an input or an output"},
        Bad{"OutputInFolder", "tool: t\noutputs:\n  a: {file: ../x}\ncommand: [a]\n",
            "/x/t.yaml:3: 'file' must be the name of a file without a folder, not beginning with "
            "'.' or '-', not "
            "'../x'"},
        Bad{"BadExpression", "tool: t\nresources:\n  memory: 2G * input.size\ncommand: [a]\n",
            "/x/t.yaml:3: 'memory' must be an amount or an expression, not '2G * input.size': "
            "'input.size' is not "
            "known here; did you mean 'inputs.size'?"},
        Bad{"StringInExpression",
            "tool: t\nparameters: {a: {}}\nresources: {cpus: a}\ncommand: [a]\n",
            "/x/t.yaml:3: 'cpus' must be an amount or an expression, not 'a': 'a' is not known "
            "here; known are "
            "inputs.size, inputs.count"},
        Bad{"UnknownResource", "tool: t\nresources: {mem: 2G}\ncommand: [a]\n",
            "/x/t.yaml:2: unknown key 'mem' in resources; did you mean 'memory'?"},
        Bad{"SmallOutputLimit", "tool: t\nresources: {output_limit: 10}\ncommand: [a]\n",
            "/x/t.yaml:2: 'output_limit' must be a size of at least 1K, or none, not '10'"},
        Bad{"ContainerWithoutImage", "tool: t\ncontainer: {binds: []}\ncommand: [a]\n",
            "/x/t.yaml:2: 'image' is missing in container"},
        Bad{"OddBind", "tool: t\ncontainer: {image: a, binds: [b:c]}\ncommand: [a]\n",
            "/x/t.yaml:2: 'binds[0]' must be /FOLDER, /FOLDER:/THERE or /FOLDER:/THERE:ro, "
            "not 'b:c'"},
        Bad{"OddNetwork", "tool: t\ncontainer: {image: a, network: off}\ncommand: [a]\n",
            "/x/t.yaml:2: 'network' must be host or none"},
        Bad{"UndeclaredInEnvironment", "tool: t\nenvironment:\n  X: \"{inptu}\"\ncommand: [a]\n",
            "/x/t.yaml:3: {inptu} is not declared; it must be a parameter, an input or an output"},
        Bad{"LoneBrace", "tool: t\nenvironment:\n  X: \"a{b\"\ncommand: [a]\n",
            "/x/t.yaml:3: 'X': a brace has no partner; write {{ or }} for the brace itself"}),
    [](const auto& row) { return row.param.name; });

TEST(ToolFile, LetsNoShellRunWhatARequestSays) {
  const auto with = [](const std::string& command) {
    return refusal(
        "tool: t\nparameters:\n  word:\n  count: {type: integer}\n  kind: {choices: [a, b]}\n"
        "inputs: {input: {}, more: {type: files}}\noutputs: {out: {}}\ncommand: " +
        command + "\n");
  };
  EXPECT_EQ(
      with(R"([sh, -c, "echo {word}"])"),
      "/x/t.yaml:8: '{word}' stands in the program of a shell, which would run what it holds; "
      "hand it over as an argument, sh -c '... \"$1\"' sh {word}, or write {word:q} there, "
      "which puts it in quotes");
  for (const char* wrong :
       {R"([sh, -c, "{word}"])", R"([nice, ksh93, -c, "cat {input} > {out}"])",
        R"x([python3, -c, "print('{word}')"])x", R"([sh, -c, "cat '{word:q}'"])",
        R"([unknown, "cat {input} > x"])", R"([ssh, host, "{word}"])"})
    EXPECT_NE(with(wrong), "accepted") << wrong;
  for (const char* right :
       {R"([sh, -c, "cat \"$1\" > {out}", sh, "{input}"])",
        R"([sh, -c, "head -n {count} x > {out}"])",
        R"([sh, -c, "cat {input:q} {more:q} > {out:q}"])", R"([sh, -c, "echo {kind} ${{word}}"])",
        R"([tool, "--in={input}", "{more}"])", R"([sh, "{tool_dir}/x.sh", "{word}"])"})
    EXPECT_EQ(with(right), "accepted") << right;
  EXPECT_NE(refusal("tool: t\nparameters: {word: }\ncommand: [a]\nservice:\n  command: [sh, -c, "
                    "\"echo {word}\"]\n"),
            "accepted");
}

TEST(ToolResources, RefusesWhatNoMachineHas) {
  const ToolFile tool = parse_tool(
      "tool: t\nparameters: {n: {type: number}}\nresources:\n  memory: 1G * n\n  cpus: 1 / "
      "n\ncommand: [a]\n",
      "/t.yaml");
  EXPECT_TRUE(evaluate(tool.resources, {{"n", 1}}));
  EXPECT_EQ(evaluate(tool.resources, {{"n", -1}}).error().text,
            "/t.yaml:5: 'cpus' comes out as -1 for this request, expected 0.01 to 65536; look at "
            "its expression: 1 / n");
  EXPECT_FALSE(evaluate(tool.resources, {{"n", 0}})) << "a division by zero";
  EXPECT_FALSE(evaluate(tool.resources, {{"n", 1e12}}));
}

TEST(ToolFile, ChecksValues) {
  using Type = ParameterDeclaration::Type;
  ParameterDeclaration p{
      .name = "p", .type = Type::Integer, .default_value = {}, .choices = {}, .description = {}};
  EXPECT_EQ(checked_value(p, "010"), "010");
  EXPECT_THROW(checked_value(p, "1e3"), std::invalid_argument);
  EXPECT_THROW(checked_value(p, "6 "), std::invalid_argument);
  p.type = Type::Number;
  EXPECT_EQ(checked_value(p, "1e3"), "1e3");
  EXPECT_THROW(checked_value(p, "inf"), std::invalid_argument);
  EXPECT_THROW(checked_value(p, ""), std::invalid_argument);
  p.type = Type::Boolean;
  EXPECT_EQ(checked_value(p, "yes"), "true");
  EXPECT_THROW(checked_value(p, "maybe"), std::invalid_argument);
  p.type = Type::String;
  const std::string nasty = "$(rm -rf /) `x` 'y' \"z\"\n; <<a>> \\1 -";
  EXPECT_EQ(checked_value(p, nasty), nasty);
  EXPECT_THROW(checked_value(p, std::string("a\0b", 3)), std::invalid_argument);
}

}  // namespace
}  // namespace hpcbatch
