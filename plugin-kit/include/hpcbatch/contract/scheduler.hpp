// The contract of a scheduler as tests; for GoogleTest.  In one source of your test program:
//
//   #include "hpcbatch/contract/scheduler.hpp"
//   INSTANTIATE_TEST_SUITE_P(Mine, SchedulerContract,
//   testing::Values(hpcbatch::contract::SchedulerCase{
//       .make = [] { return hpcbatch::contract::load<hpcbatch::Scheduler>("/path/mine.so"); }}));
//
// What answers of the real batch system mean is not told here: prove that with recorded ones.
#pragma once

#include "hpcbatch/contract/load.hpp"
#include "hpcbatch/contract/surroundings.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/submit_trial.hpp"
#include "hpcbatch/survey.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace hpcbatch::contract {

struct SchedulerCase {
  std::function<std::unique_ptr<Scheduler>()> make;
  friend std::ostream& operator<<(std::ostream& out, const SchedulerCase&) {
    return out << "scheduler";
  }
};

class SchedulerContract : public testing::TestWithParam<SchedulerCase> {
 protected:
  void SetUp() override {
    scheduler_ = GetParam().make();
    before_ = Surroundings::now();
  }
  void TearDown() override { before_.expect_unchanged(); }

  static AllocationRequest request() {
    AllocationRequest r;
    r.name = "hbTest12345abcd";
    r.partition = "short";
    r.cpus = 4;
    r.memory = std::uint64_t{4} << 30;
    r.gpus = {{"a100", 2}};
    r.walltime = std::chrono::minutes(90);
    r.options = {"--first-option", "--second=with space"};
    r.setup = {"first_line_of_setup", "second_line_of_setup"};
    r.pilot = {"/opt/hpcbatch-pilot", "--key", "a 'quoted' path"};
    r.directory = "/scratch/logs";
    return r;
  }
  static CommandOutput silence() {
    CommandOutput output;
    output.exit_code = -1;
    output.timed_out = true;
    return output;
  }
  static CommandOutput answer(int exit_code, std::string out, std::string error = "") {
    CommandOutput output;
    output.exit_code = exit_code;
    output.standard_output = std::move(out);
    output.standard_error = std::move(error);
    return output;
  }
  bool is_unclear(const CommandOutput& output) const {
    const auto read = scheduler_->read_submit(output);
    const auto* refused = std::get_if<SubmitRefused>(&read);
    return refused != nullptr && refused->refusal == Refusal::Unclear;
  }

  std::unique_ptr<Scheduler> scheduler_;
  Surroundings before_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SchedulerContract);

TEST_P(SchedulerContract, AScriptIsCleanTextWithSetupBeforeThePilot) {
  const std::string script = scheduler_->script(request());
  EXPECT_TRUE(script.starts_with("#!/"));
  EXPECT_TRUE(script.ends_with("\n"));
  EXPECT_EQ(script.find('\r'), std::string::npos);
  const auto first = script.find("\nfirst_line_of_setup\n");
  const auto second = script.find("\nsecond_line_of_setup\n");
  const auto pilot = script.find("/opt/hpcbatch-pilot");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  ASSERT_NE(pilot, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_LT(second, pilot);
  EXPECT_EQ(script.find("a 'quoted' path"), std::string::npos)
      << "the pilot's arguments must be quoted for sh";
}

TEST_P(SchedulerContract, TheSameQuestionGivesTheSameText) {
  EXPECT_EQ(scheduler_->script(request()), scheduler_->script(request()));
  EXPECT_EQ(scheduler_->submit(request(), "/s").argv, scheduler_->submit(request(), "/s").argv);
  EXPECT_EQ(scheduler_->poll("hb", {}).argv, scheduler_->poll("hb", {}).argv);
}

TEST_P(SchedulerContract, AnswersFromSeveralThreadsAtOnce) {
  const std::string script = scheduler_->script(request());
  std::vector<std::string> scripts(4);
  std::vector<std::thread> threads;
  threads.reserve(scripts.size());
  for (std::string& each : scripts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        each = scheduler_->script(request());
        (void)scheduler_->read_poll("hb", answer(0, "x|y|z\n"));
        (void)scheduler_->read_submit(answer(1, "", "refused"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : scripts) EXPECT_EQ(each, script);
}

TEST_P(SchedulerContract, SubmitsTheScriptAtItsPath) {
  const auto command = scheduler_->submit(request(), "/scratch/logs/script.sh");
  ASSERT_FALSE(command.argv.empty());
  EXPECT_NE(std::find(command.argv.begin(), command.argv.end(), "/scratch/logs/script.sh"),
            command.argv.end());
}

TEST_P(SchedulerContract, ASubmitNobodyCanReadIsUnclear) {
  EXPECT_TRUE(is_unclear(silence()));
  EXPECT_TRUE(is_unclear(answer(0, "")));
  EXPECT_TRUE(is_unclear(answer(0, "Welcome!\n")));
  EXPECT_TRUE(is_unclear(answer(137, "", "Killed")));
  EXPECT_TRUE(is_unclear(answer(1, "", "")));
}

TEST_P(SchedulerContract, APollThatDidNotSucceedConcludesNothing) {
  EXPECT_FALSE(scheduler_->read_poll("hb", silence()));
  EXPECT_FALSE(scheduler_->read_poll("hb", answer(1, "", "no contact")));
  EXPECT_FALSE(scheduler_->read_poll("hb", answer(0, "\x01 no line of a batch system \x02\n")));
  EXPECT_FALSE(scheduler_->read_probe(silence()));
  if (const auto* surveyor = dynamic_cast<const Surveyor*>(scheduler_.get())) {
    EXPECT_FALSE(surveyor->survey().argv.empty());
    EXPECT_FALSE(surveyor->read_survey(silence()));
  }
  if (const auto* watcher = dynamic_cast<const QueueWatcher*>(scheduler_.get())) {
    EXPECT_FALSE(watcher->watch_queue().argv.empty());
    EXPECT_FALSE(watcher->read_queue(silence()));
    EXPECT_FALSE(watcher->read_queue(answer(1, "", "no contact")));
    EXPECT_FALSE(watcher->read_queue(answer(0, ""))) << "an empty answer is no empty queue";
  }
  if (const auto* history = dynamic_cast<const QueueHistory*>(scheduler_.get())) {
    EXPECT_FALSE(history->list_past(std::chrono::hours{24}, std::chrono::hours{48}).argv.empty());
    EXPECT_FALSE(history->read_past(silence()));
    EXPECT_FALSE(history->read_past(answer(1, "", "no contact")));
    EXPECT_FALSE(history->read_past(answer(0, ""))) << "an empty answer is no empty history";
  }
  if (const auto* trial = dynamic_cast<const SubmitTrial*>(scheduler_.get())) {
    EXPECT_FALSE(trial->read_try_submit(silence()));
    EXPECT_FALSE(trial->read_try_submit(answer(1, "", "no contact")));
  }
}

TEST_P(SchedulerContract, PollAndCancelStandManyNames) {
  std::vector<std::string> names;
  names.reserve(200);
  for (int i = 0; i < 200; ++i) names.push_back("hbTest" + std::to_string(i));
  EXPECT_FALSE(scheduler_->poll("hbTest", names).argv.empty());
  EXPECT_FALSE(scheduler_->poll("hbTest", {}).argv.empty());
  const auto cancel = scheduler_->cancel(names, std::vector<std::string>(names.size()));
  std::string line = cancel.input;
  for (const std::string& word : cancel.argv) line += " " + word;
  for (const std::string& name : names) {
    EXPECT_NE(line.find(name), std::string::npos) << name << " is not cancelled";
  }
}

}  // namespace hpcbatch::contract
