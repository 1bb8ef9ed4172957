// Files that tasks make for others: published when it is allowed, all or none, and never where they
// may not go.
#include "pilot_fixture.hpp"

#include <gmock/gmock.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace hpcbatch::pilot {
namespace {

using testing::HasSubstr;

class OutputsTest : public PilotTest {
 protected:
  void SetUp() override { ::mkdir(path("out").c_str(), 0700); }

  wire::Start with_outputs(unsigned n, const std::string& script,
                           const std::vector<std::string>& names) {
    wire::Start start = shell(n, script);
    start.set_directory_token("@DIR@");
    for (const std::string& name : names) {
      wire::Output* output = start.add_outputs();
      output->set_name(name);
      output->set_staged(name);
      output->set_destination(path("out/" + name));
    }
    return start;
  }
  void allow(unsigned n) {
    wire::ToPilot message;
    *message.add_publish() = attempt(n);
    send(message);
  }
  /// Runs it, allows it, and gives its last result.
  wire::Result published(const wire::Start& start) {
    const auto n = static_cast<unsigned>(start.attempt().array());
    auto first = outcome(start);
    if (!first.outputs_staged()) return first;
    allow(n);
    until("the last result", [&] { return !results_[n].outputs_staged(); });
    return results_[n];
  }
  /// Where this pilot makes the directories of its attempts.
  std::string work() const {
    char name[64];
    std::snprintf(name, sizeof name, "workspace/work/Hbtest.0.%016lx",
                  static_cast<unsigned long>(registration_.incarnation()));
    return path(name);
  }
  std::size_t attempts_left() const {
    const auto entries = std::filesystem::directory_iterator(work());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }
  std::size_t files_in(const std::string& name) const {
    const auto entries = std::filesystem::directory_iterator(path(name));
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }
};

TEST_F(OutputsTest, AreMovedWhenTheEngineAllowsIt) {
  start();
  auto two = with_outputs(1, "echo one > one; mkdir sub; echo two > @DIR@/sub/two; pwd", {"one"});
  wire::Output* second = two.add_outputs();
  second->set_staged("sub/two");
  second->set_destination(path("out/second"));
  const auto first = outcome(two);
  EXPECT_EQ(first.failure(), "ok");
  EXPECT_TRUE(first.outputs_staged());
  EXPECT_EQ(output(first), work() + "/1.0-1-100000007\n");
  EXPECT_EQ(files_in("out"), 0U);
  allow(1);
  until("the last result", [&] { return !results_[1].outputs_staged(); });
  EXPECT_EQ(results_[1].failure(), "ok");
  EXPECT_EQ(contents("out/one"), "one\n");
  EXPECT_EQ(contents("out/second"), "two\n");
  EXPECT_EQ(files_in("out"), 2U);
  until("its directory to be removed", [&] { return attempts_left() == 0; });
  acknowledge(1);
}

TEST_F(OutputsTest, AreCopiedToAnotherFileSystem) {
  char elsewhere[] = "/dev/shm/hpcbatch-test-XXXXXX";
  if (::mkdtemp(elsewhere) == nullptr) GTEST_SKIP() << "no second file system";
  struct stat here {};
  struct stat there {};
  ASSERT_EQ(::stat(directory_.c_str(), &here), 0);
  ASSERT_EQ(::stat(elsewhere, &there), 0);
  if (here.st_dev == there.st_dev) GTEST_SKIP() << "no second file system";
  start();
  auto large = with_outputs(1, "head -c 5000000 /dev/zero > large; chmod 640 large", {"large"});
  large.mutable_outputs(0)->set_destination(std::string(elsewhere) + "/large");
  EXPECT_EQ(published(large).failure(), "ok");
  ASSERT_EQ(::stat((std::string(elsewhere) + "/large").c_str(), &there), 0);
  EXPECT_EQ(there.st_size, 5'000'000);
  EXPECT_EQ(there.st_mode & 0777, 0640U);
  std::filesystem::remove_all(elsewhere);
}

TEST_F(OutputsTest, MustBeThereAndBeRegularFiles) {
  start();
  write("secret", "of somebody else");
  EXPECT_EQ(outcome(with_outputs(1, "true", {"absent"})).failure(), "output_missing");
  EXPECT_THAT(results_[1].message(), HasSubstr("absent"));
  EXPECT_EQ(outcome(with_outputs(2, "mkdir dir", {"dir"})).failure(), "output_invalid");
  EXPECT_EQ(outcome(with_outputs(3, "ln -s " + path("secret") + " link", {"link"})).failure(),
            "output_invalid");
  EXPECT_EQ(outcome(with_outputs(4, "mkfifo fifo", {"fifo"})).failure(), "output_invalid");
  EXPECT_EQ(outcome(with_outputs(5, "ln -s " + directory_ + " d", {"d/secret"})).failure(),
            "output_invalid");
  EXPECT_EQ(outcome(with_outputs(6, "true", {"../../../secret"})).failure(), "output_invalid");
  EXPECT_EQ(outcome(with_outputs(7, "echo x > there; exit 1", {"there"})).failure(), "tool_failed");
  EXPECT_EQ(contents("secret"), "of somebody else");
  EXPECT_EQ(files_in("out"), 0U);
  until("their directories to be removed", [&] { return attempts_left() == 0; });
}

TEST_F(OutputsTest, ThoseToBeFetchedGetAFolderWhenTheyAreThere) {
  start();
  const auto fetched = [&](unsigned n, const std::string& script) {
    auto task = with_outputs(n, script, {"made", "spare"});
    task.set_stage_out(true);
    const std::string folder = path("workspace/out/" + std::to_string(n)) + "/";
    task.mutable_outputs(0)->set_destination(folder + "0");
    task.mutable_outputs(1)->set_destination(folder + "1");
    task.mutable_outputs(1)->set_place(1);
    task.mutable_outputs(1)->set_optional(true);
    wire::Output* stream = task.add_outputs();
    stream->set_staged("said");
    stream->set_place(3);
    stream->set_of_failure(true);
    stream->set_destination(folder + "3");
    return published(task);
  };
  const auto good = fetched(1, "echo x > made; echo y > said");
  EXPECT_TRUE(good.stage_out());
  EXPECT_THAT(good.published(), testing::ElementsAre(0U, 3U));
  EXPECT_EQ(files_in("workspace/out/1"), 2U);
  const auto failed = fetched(2, "echo x > made; echo y > said; exit 3");
  EXPECT_TRUE(failed.stage_out());
  EXPECT_THAT(failed.published(), testing::ElementsAre(3U));
  EXPECT_EQ(contents("workspace/out/2/3"), "y\n");
  const auto silent = fetched(3, "echo x > made; exit 3");
  EXPECT_FALSE(silent.stage_out());
  EXPECT_EQ(files_in("workspace/out"), 2U) << "nothing of the third";
}

TEST_F(OutputsTest, MayBeLeftOutWhereTheyAreOptional) {
  start();
  auto one = with_outputs(1, "echo x > made", {"made", "spare"});
  one.mutable_outputs(1)->set_optional(true);
  EXPECT_EQ(published(one).failure(), "ok");
  EXPECT_EQ(contents("out/made"), "x\n");
  EXPECT_EQ(files_in("out"), 1U);
  auto both = with_outputs(2, "echo x > made; echo y > spare", {"made", "spare"});
  both.mutable_outputs(1)->set_optional(true);
  EXPECT_EQ(published(both).failure(), "ok");
  EXPECT_EQ(contents("out/spare"), "y\n");
  auto none = with_outputs(3, "true", {"spare"});
  none.mutable_outputs(0)->set_optional(true);
  EXPECT_EQ(published(none).failure(), "ok");
  auto invalid = with_outputs(4, "mkdir spare", {"spare"});
  invalid.mutable_outputs(0)->set_optional(true);
  EXPECT_EQ(outcome(invalid).failure(), "output_invalid") << "what is there must be an output";
}

TEST_F(OutputsTest, ArePublishedAllOrNone) {
  start();
  ::mkdir(path("out/second").c_str(), 0700);
  const auto result =
      published(with_outputs(1, "echo 1 > first; echo 2 > second", {"first", "second"}));
  EXPECT_EQ(result.failure(), "stage_out_failed");
  EXPECT_THAT(result.message(), HasSubstr("the destination is a directory"));
  EXPECT_FALSE(exists("out/first"));
  auto lost = with_outputs(2, "echo 1 > first; echo 2 > other", {"first", "other"});
  lost.mutable_outputs(1)->set_destination(path("nowhere/other"));
  EXPECT_EQ(published(lost).failure(), "stage_out_failed");
  EXPECT_EQ(files_in("out"), 1U) << "nothing is left beside the destinations";
}

TEST_F(OutputsTest, GoOnlyWhereTheAskerOwnsTheDirectory) {
  start();
  auto foreign = with_outputs(1, "echo x > x", {"x"});
  foreign.mutable_outputs(0)->set_check_owner(true);
  foreign.mutable_outputs(0)->set_owner(::geteuid() + 4711);
  auto result = published(foreign);
  EXPECT_EQ(result.failure(), "stage_out_failed");
  EXPECT_THAT(result.message(), HasSubstr("belongs to user"));

  auto open = with_outputs(2, "echo x > x", {"x"});
  open.mutable_outputs(0)->set_check_owner(true);
  open.mutable_outputs(0)->set_owner(::geteuid());
  ASSERT_EQ(::chmod(path("out").c_str(), 0777), 0);
  result = published(open);
  EXPECT_EQ(result.failure(), "stage_out_failed");
  EXPECT_THAT(result.message(), HasSubstr("others than its owner may write"));
  EXPECT_EQ(files_in("out"), 0U);

  ASSERT_EQ(::chmod(path("out").c_str(), 0755), 0);
  auto own = with_outputs(3, "echo x > x", {"x"});
  own.mutable_outputs(0)->set_check_owner(true);
  own.mutable_outputs(0)->set_owner(::geteuid());
  EXPECT_EQ(published(own).failure(), "ok");
  EXPECT_EQ(contents("out/x"), "x\n");
}

TEST_F(OutputsTest, ReplaceWhatIsThereInOneStep) {
  start();
  write("out/x", "old");
  EXPECT_EQ(published(with_outputs(1, "echo new > x", {"x"})).failure(), "ok");
  EXPECT_EQ(contents("out/x"), "new\n");
}

TEST_F(OutputsTest, AKillBeforeThatRemovesThem) {
  start();
  EXPECT_TRUE(outcome(with_outputs(1, "echo x > x", {"x"})).outputs_staged());
  EXPECT_TRUE(outcome(with_outputs(2, "echo x > x", {"x"})).outputs_staged());
  kill_task(1);
  kill_task(2, true);
  until("the last result", [&] { return !results_[1].outputs_staged(); });
  EXPECT_EQ(results_[1].failure(), "cancelled");
  allow(1);
  allow(2);
  until("their directories to be removed", [&] { return attempts_left() == 0; });
  EXPECT_EQ(outcome(shell(3, "true")).failure(), "ok");
  EXPECT_EQ(files_in("out"), 0U);
  EXPECT_TRUE(results_[2].outputs_staged()) << "nothing more is said of one that was fenced off";
}

TEST_F(OutputsTest, WaitForTheEngineToComeBack) {
  start();
  EXPECT_TRUE(outcome(with_outputs(1, "echo x > x", {"x"})).outputs_staged());
  engine_dies();
  results_.clear();
  listen();
  welcome();
  ASSERT_EQ(registration_.held_size(), 1);
  EXPECT_EQ(registration_.held(0).state(), 4U);
  until("the first result again", [&] { return results_.contains(1); });
  EXPECT_TRUE(results_[1].outputs_staged());
  allow(1);
  until("the last result", [&] { return !results_[1].outputs_staged(); });
  EXPECT_EQ(contents("out/x"), "x\n");
}

TEST_F(OutputsTest, NothingOfAnAttemptStaysWhenThePilotEnds) {
  start();
  auto many = shell(1, "mkdir d; cd d; seq 20000 | xargs touch; echo made; sleep 600");
  many.set_follow(true);
  run(many);
  until("the files", [&] { return chunks_[1][1] == "made\n"; });
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_EQ(files_in("workspace/work"), 0U);
}

TEST_F(OutputsTest, ATaskWithoutADirectoryGetsOneOfItsOwn) {
  start();
  const auto result = outcome(shell(1, "pwd; touch x"));
  EXPECT_EQ(output(result), work() + "/1.0-1-100000007\n");
  until("it to be removed", [&] { return attempts_left() == 0; });
  auto named = shell(2, "pwd");
  named.set_directory(path("out"));
  EXPECT_EQ(output(outcome(named)), path("out") + "\n");
}

}  // namespace
}  // namespace hpcbatch::pilot
