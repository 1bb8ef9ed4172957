// The service of a tool's file: what it may say, and whose values its command has.
#include "documents/view.hpp"
#include "tools/tool_file.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

ToolFile tool_with(const std::string& service, const std::string& more = "") {
  return parse_tool("tool: t\nparameters: {python: {default: py}}\ncommand: [a]\n" + more +
                        "service: " + service + "\n",
                    "/tools/t.yaml");
}

std::string refusal_of(const std::string& service, const std::string& more = "") {
  try {
    tool_with(service, more);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ToolService, HasTheToolsNameAndItsOwnBounds) {
  const auto service =
      tool_with(
          "{kind: answer, command: [\"{python}\", \"{tool_dir}/w.py\"], memory: 3G, idle: 2m, "
          "batch: 8, instances: 2, requests: 5, start: 90s, env: {A: b}}")
          .service;
  ASSERT_TRUE(service);
  EXPECT_EQ(service->name, "t");
  EXPECT_EQ(service->kind, TaskService::Kind::Answer);
  EXPECT_EQ(service->memory, std::uint64_t{3} << 30);
  EXPECT_EQ(service->idle, std::chrono::minutes(2));
  EXPECT_EQ(service->start, std::chrono::seconds(90));
  EXPECT_EQ(service->batch, 8U);
  EXPECT_EQ(service->instances, 2U);
  EXPECT_EQ(service->requests, 5U);
  EXPECT_EQ(filled_service(*service, {{"python", "/opt/py"}, {"tool_dir", "/tools"}}).argv,
            (std::vector<std::string>{"/opt/py", "/tools/w.py"}));
}

TEST(ToolService, ForksWhereNothingElseIsSaid) {
  EXPECT_EQ(tool_with("{command: [a]}").service->kind, TaskService::Kind::Fork);
}

TEST(ToolService, IsRefusedWithTheLine) {
  EXPECT_NE(refusal_of("{kind: answer}").find("/tools/t.yaml:4"), std::string::npos)
      << refusal_of("{kind: answer}");
  EXPECT_NE(refusal_of("{command: []}").find("names no program"), std::string::npos);
  EXPECT_NE(refusal_of("{command: [a], batch: 2}").find("kind: answer"), std::string::npos);
  EXPECT_NE(refusal_of("{command: [a], kind: other}").find("fork"), std::string::npos);
  EXPECT_NE(refusal_of("{command: [a], kind: answer, batch: 0}").find("batch"), std::string::npos);
  EXPECT_NE(refusal_of("{command: [a], comand: [b]}").find("comand"), std::string::npos);
  EXPECT_NE(refusal_of("{command: [\"{who}\"]}").find("who"), std::string::npos);
  EXPECT_NE(refusal_of("{command: [a]}", "container: x.sif\n").find("container"),
            std::string::npos);
}

}  // namespace
}  // namespace hpcbatch
