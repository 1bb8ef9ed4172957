// The contract of a tool plugin as tests; for GoogleTest.  In one source of your test program:
//
//   #include "hpcbatch/contract/tool.hpp"
//   INSTANTIATE_TEST_SUITE_P(Mine, ToolContract, testing::Values(hpcbatch::contract::ToolCase{
//       .make = [] { return hpcbatch::contract::load<hpcbatch::Tool>("/path/mine.so",
//       text_of_the_tools_file); }, .good = {request, another}, .bad = {wrong}}));
#pragma once

#include "hpcbatch/contract/load.hpp"
#include "hpcbatch/contract/surroundings.hpp"
#include "hpcbatch/input_facts.hpp"
#include "hpcbatch/tool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hpcbatch::contract {

struct ToolCase {
  std::function<std::unique_ptr<Tool>()> make;
  std::vector<ToolRequest> good;  ///< whose files need not exist
  std::vector<ToolRequest> bad;
  friend std::ostream& operator<<(std::ostream& out, const ToolCase&) { return out << "tool"; }
};

class ToolContract : public testing::TestWithParam<ToolCase> {
 protected:
  void SetUp() override {
    tool_ = GetParam().make();
    before_ = Surroundings::now();
  }
  void TearDown() override { before_.expect_unchanged(); }

  static void expect_equal(const ToolTask& a, const ToolTask& b) {
    EXPECT_EQ(a.argv, b.argv);
    EXPECT_EQ(a.environment, b.environment);
    EXPECT_EQ(a.container, b.container);
    EXPECT_EQ(a.needs.cpus, b.needs.cpus);
    EXPECT_EQ(a.needs.memory, b.needs.memory);
    EXPECT_EQ(a.needs.disk, b.needs.disk);
    EXPECT_EQ(a.needs.gpus, b.needs.gpus);
    EXPECT_EQ(a.needs.time, b.needs.time);
  }

  std::unique_ptr<Tool> tool_;
  Surroundings before_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ToolContract);

TEST_P(ToolContract, WhatIsValidRenders) {
  for (const ToolRequest& request : GetParam().good) {
    EXPECT_NO_THROW(tool_->validate(request));
    const ToolTask task = tool_->render(request);
    ASSERT_FALSE(task.argv.empty());
    EXPECT_FALSE(task.argv.front().empty());
    for (const std::string& argument : task.argv) EXPECT_EQ(argument.find('\0'), std::string::npos);
  }
}

TEST_P(ToolContract, WhatIsWrongIsRefusedWithOneSentence) {
  for (const ToolRequest& request : GetParam().bad) {
    try {
      tool_->validate(request);
      ADD_FAILURE() << "a bad request was accepted";
    } catch (const std::exception& e) {
      const std::string text = e.what();
      EXPECT_FALSE(text.empty());
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
}

TEST_P(ToolContract, TheSameRequestGivesTheSameTask) {
  for (const ToolRequest& request : GetParam().good) {
    expect_equal(tool_->render(request), tool_->render(request));
    expect_equal(tool_->render(request), GetParam().make()->render(request));
  }
}

TEST_P(ToolContract, RendersFromSeveralThreadsAtOnce) {
  for (const ToolRequest& request : GetParam().good) {
    const ToolTask expected = tool_->render(request);
    std::vector<ToolTask> tasks(4);
    std::vector<std::thread> threads;
    threads.reserve(tasks.size());
    for (ToolTask& task : tasks) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) task = tool_->render(request);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const ToolTask& task : tasks) expect_equal(task, expected);
  }
}

TEST_P(ToolContract, DescribesItself) {
  EXPECT_EQ(tool_->describe().summary, tool_->describe().summary);
}

TEST_P(ToolContract, FactsOfInputsHaveNamesAndAreTold) {
  const auto* const facts = dynamic_cast<const InputFacts*>(tool_.get());
  if (facts == nullptr) return;
  std::set<std::string> names{"size", "count"};
  for (const FactDescription& fact : facts->facts()) {
    EXPECT_TRUE(names.insert(fact.name).second) << fact.name << " is there already";
    const bool is_name = !fact.name.empty() && std::isdigit(fact.name.front()) == 0 &&
                         std::all_of(fact.name.begin(), fact.name.end(), [](unsigned char c) {
                           return c < 128 && (std::isalnum(c) != 0 || c == '_');
                         });
    EXPECT_TRUE(is_name) << "'" << fact.name << "' is no name";
  }
  const std::string absent = "/hpcbatch/no/such/file";
  try {
    (void)facts->facts_of({.path = absent});
    ADD_FAILURE() << "a file that is not there has facts";
  } catch (const std::exception& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find(absent), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

}  // namespace hpcbatch::contract
