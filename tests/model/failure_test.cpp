// The closed list of ends: stable words, and who pays for another try.
#include "failure/failure.hpp"
#include "model/task.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hpcbatch {
namespace {

TEST(Failures, HaveStableWords) {
  // Clients match on these words: the list may grow, none may change.
  const char* const words[] = {"ok",
                               "tool_failed",
                               "tool_signal",
                               "oom_task",
                               "time_task",
                               "disk_task",
                               "looping",
                               "input_missing",
                               "input_changed",
                               "output_missing",
                               "output_invalid",
                               "stage_in_failed",
                               "stage_out_failed",
                               "container_missing",
                               "container_failed",
                               "gpu_error",
                               "node_lost",
                               "service_lost",
                               "pilot_walltime",
                               "pilot_preempted",
                               "pilot_killed",
                               "dependency_failed",
                               "set_aside",
                               "never_fits",
                               "cancelled",
                               "engine_error",
                               "workspace_lost",
                               "oom_gpu",
                               "deadline",
                               "requeued"};
  ASSERT_EQ(std::size(words), static_cast<std::size_t>(kFailures));
  for (int i = 0; i < kFailures; ++i) {
    EXPECT_EQ(to_string(static_cast<Failure>(i)), words[i]);
    EXPECT_EQ(parse_failure(words[i]), static_cast<Failure>(i));
  }
  EXPECT_EQ(parse_failure("OK"), std::nullopt);
  EXPECT_EQ(parse_failure(""), std::nullopt);
}

TEST(Failures, AreTheTasksOwnUnlessNamed) {
  const std::set<std::string> not_its_fault{"gpu_error",       "node_lost",      "service_lost",
                                            "pilot_preempted", "pilot_walltime", "pilot_killed",
                                            "workspace_lost",  "requeued"};
  for (int i = 0; i < kFailures; ++i) {
    const auto failure = static_cast<Failure>(i);
    EXPECT_EQ(is_not_the_tasks_fault(failure),
              not_its_fault.contains(std::string(to_string(failure))))
        << to_string(failure);
  }
}

TEST(Failures, LeadToAState) {
  EXPECT_EQ(state_after(Failure::Ok), TaskState::Done);
  EXPECT_EQ(state_after(Failure::Cancelled), TaskState::Cancelled);
  EXPECT_EQ(state_after(Failure::SetAside), TaskState::Failed);
  for (const char* word :
       {"waiting", "held", "running", "unknown", "done", "failed", "cancelled", "finishing"}) {
    ASSERT_TRUE(parse_task_state(word)) << word;
    EXPECT_EQ(to_string(*parse_task_state(word)), word);
  }
}

TEST(Failures, AreChosenByWordExitCodeOrSignal) {
  const auto admits = [](const char* text, const WayToEnd& one) {
    const auto choice = parse_failure_choice(text);
    return choice && choice->admits(one);
  };
  EXPECT_TRUE(admits("oom_task", {Failure::OomTask, 137, 0}));
  EXPECT_FALSE(admits("oom_task", {Failure::ToolFailed, 137, 0}));
  EXPECT_TRUE(admits("exit:137", {Failure::OomTask, 137, 0}));
  EXPECT_TRUE(admits("exit:139", {Failure::ToolSignal, 0, 11})) << "as it is shown";
  EXPECT_FALSE(admits("exit:13", {Failure::OomTask, 137, 0}));
  EXPECT_FALSE(admits("exit:3", {Failure::Ok, 3, 0})) << "it was said to be well";
  EXPECT_TRUE(admits("signal:11", {Failure::ToolSignal, 0, 11}));
  EXPECT_FALSE(admits("signal:11", {Failure::ToolSignal, 0, 6}));
  for (const char* wrong : {"", "ok", "exit", "exit:", "exit:0", "exit:-1", "exit:256", "exit:3x",
                            "exit: 3", "signal:65", "signal:0", "3"})
    EXPECT_FALSE(parse_failure_choice(wrong)) << wrong;
}

}  // namespace
}  // namespace hpcbatch
