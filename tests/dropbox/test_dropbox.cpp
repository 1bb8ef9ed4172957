// A whole drop box: real files, real events, and a port behind which the test itself stands as the
// engine.
#include "documents/yaml.hpp"
#include "dropbox/dropbox.hpp"
#include "dropbox/folder.hpp"
#include "folder_of_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kPatience = 20s;

/// Keeps what was asked for until the test takes it.
class FakePort final : public SubmitPort {
 public:
  void submit(DropboxTask task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    asked_.notify_all();
  }
  void cancel(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(key);
    asked_.notify_all();
  }
  DropboxTask next_task() { return next(tasks_); }
  std::string next_cancelled() { return next(cancelled_); }
  bool is_quiet() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty() && cancelled_.empty();
  }

 private:
  template <class Thing>
  Thing next(std::deque<Thing>& queue) {
    std::unique_lock lock(mutex_);
    if (!asked_.wait_for(lock, kPatience, [&] { return !queue.empty(); }))
      throw std::runtime_error("nothing was asked");
    Thing thing = std::move(queue.front());
    queue.pop_front();
    return thing;
  }
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<DropboxTask> tasks_;
  std::deque<std::string> cancelled_;
};

struct DropboxTest : testing::Test {
  DropboxTest() {
    folder.make("box");
    folder.make("templates");
    folder.make("data");
    ::chmod((folder / "data").c_str(), 0755);
    folder.write("data/a.wav", "sound");
    folder.write("templates/copy.template",
                 "#!/bin/sh\n# <<level>> <<containers>>\ncp <<workspace>>/input/<<input>> "
                 "<<workspace>>/output/<<out>>\n");
    options.directory = folder / "box";
    options.workspace = folder / "work";
    options.templates = {folder / "templates"};
    options.variables = {{"containers", "/sif files"}};
    options.quiet = 20ms;
    options.grace = 200ms;
    options.look_every = 50ms;
    options.warn = [this](const std::string& text) {
      const std::lock_guard lock(warnings_mutex);
      warnings += text + "\n";
    };
    events.watch(folder / "box");
  }

  void start() {
    auto started = Dropbox::start(options, port);
    ASSERT_TRUE(started) << started.error().text;
    box = std::move(*started);
  }
  /// As a careful client does.
  void drop(const std::string& name, const std::string& text) {
    folder.write("box/" + name + ".new", text);
    std::filesystem::rename(folder / ("box/" + name + ".new"), folder / ("box/" + name));
  }
  std::string job(const std::string& script = "copy", const std::string& out = "out.tsv") const {
    return "script: " + script +
           "\nargs: {level: 6}\ninput_map: {input: " + (folder / "data/a.wav") +
           "}\noutput_map: {out: " + (folder / ("data/" + out)) + "}\n";
  }
  void wait_for(const std::string& name) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!folder.has("box/" + name)) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << name << " did not come\n" << warnings;
      events.wait(100ms);
    }
  }
  Node finished(const std::string& name) {
    wait_for(name + ".finished");
    return parse_yaml(folder.read("box/" + name + ".finished"), name,
                      {.bytes = 1 << 24, .nodes = 20'000, .depth = 40});
  }
  /// What the engine and a pilot would do with it.
  void run(const DropboxTask& task, Failure failure = Failure::Ok) {
    const auto& argv = std::get<std::vector<std::string>>(task.work);
    std::string line;
    for (const std::string& word : argv) line += "'" + word + "' ";
    const int status = std::system(line.c_str());
    end(task.key, failure, WEXITSTATUS(status));
  }
  void end(const std::string& key, Failure failure, int code) {
    box->task_ended({.key = key,
                     .failure = failure,
                     .exit_code = code,
                     .message = "it happened",
                     .standard_output = "out\xff",
                     .standard_error = "err",
                     .start = std::nullopt,
                     .end = std::nullopt,
                     .outputs = {}});
  }
  std::size_t folders_in_work() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder / "work"))
      ++count;
    return count;
  }

  FolderOfTest folder;
  FolderEvents events;
  FakePort port;
  DropboxOptions options;
  std::mutex warnings_mutex;
  std::string warnings;
  std::unique_ptr<Dropbox> box;
};

TEST_F(DropboxTest, AJobRunsFromItsFileToItsResult) {
  start();
  drop("x.job", job());
  const DropboxTask task = port.next_task();
  EXPECT_EQ(task.client, "dropbox:" + (folder / "box"));
  EXPECT_TRUE(folder.has("box/x.job.submitted"));
  EXPECT_FALSE(folder.has("box/x.job"));
  struct stat status {};
  ASSERT_EQ(::stat((task.directory + "/job.sh").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0750U);
  run(task);
  const Node result = finished("x.job");
  EXPECT_EQ(result.find("job")->find("status")->text, "ok")
      << result.find("job")->find("message")->text;
  EXPECT_EQ(result.find("job")->find("message")->text, "Successful");
  EXPECT_EQ(result.find("job")->find("rc")->text, "0");
  EXPECT_EQ(result.find("job")->find("stderr")->text, "err");
  EXPECT_EQ(result.find("hpc")->find("workspace")->text, task.directory);
  EXPECT_EQ(folder.read("data/out.tsv"), "sound");
  EXPECT_FALSE(folder.has("box/x.job.submitted"));
  box.reset();
  EXPECT_EQ(folders_in_work(), 0U) << "nothing is left behind";
}

TEST_F(DropboxTest, AToolThatFailsLeavesNoOutputs) {
  start();
  drop("x.job", job());
  const DropboxTask task = port.next_task();
  folder.write("data/out.tsv", "from before");
  std::ofstream(task.output_directory + "/out.tsv") << "half";
  end(task.key, Failure::ToolFailed, 3);
  const Node result = finished("x.job");
  EXPECT_EQ(result.find("job")->find("message")->text, "Remote process failed with RC 3");
  EXPECT_EQ(result.find("job")->find("rc")->text, "3");
  EXPECT_EQ(folder.read("data/out.tsv"), "from before");
}

TEST_F(DropboxTest, AMissingOutputIsAnError) {
  start();
  drop("x.job", job());
  end(port.next_task().key, Failure::Ok, 0);
  const Node result = finished("x.job");
  EXPECT_EQ(result.find("job")->find("message")->text, "Could not copy files");
  EXPECT_EQ(result.find("job")->find("reason")->text,
            "output_missing: the tool did not write 'out'");
}

TEST_F(DropboxTest, AHalfWrittenFileGetsTime) {
  options.grace = 60s;
  start();
  // As AMP's client does it: the name is the final one from the beginning, and then it is filled.
  folder.write("box/tmpab12cd34.job", "");
  std::ofstream file(folder / "box/tmpab12cd34.job");
  const std::string text = job();
  file << text.substr(0, text.size() / 2) << std::flush;
  folder.write("box/other.job", "");
  drop("z.job", job("copy", "z.tsv"));
  EXPECT_EQ(port.next_task().name, "z.job") << "the others do not wait for it";
  file << text.substr(text.size() / 2);
  file.close();
  EXPECT_EQ(port.next_task().name, "tmpab12cd34.job");
  EXPECT_TRUE(folder.has("box/other.job"));
}

TEST_F(DropboxTest, AFileThatNeverMakesSenseIsRefused) {
  start();
  drop("empty.job", "");
  drop("list.job", "- a\n");
  drop("keys.job", "script: copy\ninput_map: {}\n");
  drop("bomb.job", "a: &a [x, x]\nb: &b [*a, *a]\n");
  drop("large.job", std::string(5'000'000, ' '));
  drop("tag.job", "script: !!python/object/apply:os.system [id]\n");
  for (const char* name :
       {"empty.job", "list.job", "keys.job", "bomb.job", "large.job", "tag.job"}) {
    const Node result = finished(name);
    EXPECT_EQ(result.find("job")->find("status")->text, "error");
    EXPECT_THAT(result.find("job")->find("message")->text,
                HasSubstr("The job file cannot be used: "));
    EXPECT_FALSE(folder.has(std::string("box/") + name));
  }
  EXPECT_THAT(finished("keys.job").find("job")->find("message")->text,
              HasSubstr("'output_map' is missing"));
  EXPECT_TRUE(port.is_quiet());
}

TEST_F(DropboxTest, WhatCannotBeSentIsToldAtOnce) {
  options.grace = 1h;
  start();
  const auto message = [&](const std::string& name, const std::string& text) {
    drop(name, text);
    const Node result = finished(name);
    EXPECT_EQ(result.find("job")->find("status")->text, "error");
    return result.find("job")->find("message")->text;
  };
  EXPECT_THAT(message("a.job", job("../../etc/passwd")),
              HasSubstr("is no name of a template or a tool"));
  EXPECT_THAT(message("b.job", job("/etc/passwd")),
              HasSubstr("is no name of a template or a tool"));
  std::string missing = job();
  missing.replace(missing.find("a.wav"), 5, "b.wav");
  EXPECT_THAT(message("c.job", missing), HasSubstr("input_missing"));
  EXPECT_THAT(message("d.job", job("copy", "../box/evil.job")), HasSubstr("'..'"));
  EXPECT_THAT(message("e.job", job("copy", "no/where")), HasSubstr("its folder cannot be opened"));
  EXPECT_THAT(message("f.job", job("copy", "a.wav")), HasSubstr("are the same file"));
  EXPECT_TRUE(port.is_quiet());
}

TEST_F(DropboxTest, ATemplateIsFilledAsAmpFillsIt) {
  start();
  const auto line_for = [&](const std::string& args) {
    std::string text = job();
    text.replace(text.find("level: 6"), 8, args);
    drop("x.job", text);
    const DropboxTask task = port.next_task();
    const std::string script =
        folder.read(task.directory.substr(folder.path().size() + 1) + "/job.sh");
    end(task.key, Failure::ToolFailed, 1);
    finished("x.job");
    return script.substr(script.find("# "), script.find("\ncp") - script.find("# "));
  };
  EXPECT_EQ(line_for("level: 'two \"words\" $x'"), "# two \"words\" $x /sif files");
  EXPECT_EQ(line_for("level: ''"), "#  /sif files");
  EXPECT_EQ(line_for("lvl: 6"), "# <<level>> /sif files");
  const std::lock_guard lock(warnings_mutex);
  EXPECT_THAT(warnings, HasSubstr("template 'copy' uses <<level>>, which the job does not give"));
}

TEST_F(DropboxTest, AScriptWithoutTemplateIsATool) {
  start();
  drop("x.job", job("segmenter"));
  const DropboxTask task = port.next_task();
  const auto& call = std::get<ToolCall>(task.work);
  EXPECT_EQ(call.tool, "segmenter");
  EXPECT_EQ(call.parameters.at("level"), "6");
  EXPECT_EQ(call.inputs.at("input").at(0).path, folder / "data/a.wav");
  EXPECT_EQ(call.inputs.at("input").at(0).size, 5U);
  EXPECT_EQ(call.outputs.at("out"), folder / "data/out.tsv");
  std::ofstream(task.output_directory + "/segments.tsv") << "result";
  box->task_ended({.key = task.key,
                   .failure = Failure::Ok,
                   .exit_code = 0,
                   .message = {},
                   .standard_output = {},
                   .standard_error = {},
                   .start = std::nullopt,
                   .end = std::nullopt,
                   .outputs = {{"out", {"segments.tsv"}}}});
  EXPECT_EQ(finished("x.job").find("job")->find("status")->text, "ok");
  EXPECT_EQ(folder.read("data/out.tsv"), "result");
}

TEST_F(DropboxTest, AToolMayLeaveAnOptionalOutputOut) {
  start();
  const auto message_for = [&](const std::string& name, bool optional) {
    drop(name, job("segmenter"));
    box->task_ended({.key = port.next_task().key,
                     .failure = Failure::Ok,
                     .exit_code = 0,
                     .message = {},
                     .standard_output = {},
                     .standard_error = {},
                     .start = std::nullopt,
                     .end = std::nullopt,
                     .outputs = {{"out", {"segments.tsv", optional}}}});
    return finished(name).find("job")->find("message")->text;
  };
  EXPECT_EQ(message_for("x.job", true), "Successful");
  EXPECT_FALSE(folder.has("data/out.tsv"));
  EXPECT_EQ(message_for("y.job", false), "Could not copy files");
}

TEST_F(DropboxTest, ARefusalOfTheEngineIsTold) {
  start();
  drop("x.job", job("segmentre"));
  box->task_ended({.key = port.next_task().key,
                   .failure = std::nullopt,
                   .exit_code = -1,
                   .message = "there is no tool 'segmentre'",
                   .standard_output = {},
                   .standard_error = {},
                   .start = std::nullopt,
                   .end = std::nullopt,
                   .outputs = {}});
  EXPECT_EQ(finished("x.job").find("job")->find("message")->text, "there is no tool 'segmentre'");
}

TEST_F(DropboxTest, RemovingTheSubmittedFileCancels) {
  start();
  drop("x.job", job());
  const DropboxTask task = port.next_task();
  std::filesystem::remove(folder / "box/x.job.submitted");
  EXPECT_EQ(port.next_cancelled(), task.key);
  run(task, Failure::Cancelled);
  EXPECT_THAT(finished("x.job").find("job")->find("message")->text, HasSubstr("Cancelled"));
  EXPECT_FALSE(folder.has("data/out.tsv"));
}

TEST_F(DropboxTest, JobsAreTakenUpAgainAfterARestart) {
  start();
  drop("x.job", job());
  drop("y.job", job("segmenter", "y.tsv"));
  std::map<std::string, DropboxTask> before;
  for (int i = 0; i < 2; ++i) {
    DropboxTask task = port.next_task();
    before.emplace(task.name, std::move(task));
  }
  box.reset();
  std::filesystem::remove(folder / "data/a.wav");  // staged already, or with the engine
  start();
  for (int i = 0; i < 2; ++i) {
    const DropboxTask again = port.next_task();
    EXPECT_EQ(again.key, before.at(again.name).key);
    EXPECT_EQ(again.directory, before.at(again.name).directory);
    EXPECT_EQ(again.work.index(), before.at(again.name).work.index());
    if (again.name == "x.job") run(again);
  }
  EXPECT_EQ(finished("x.job").find("job")->find("status")->text, "ok");
  EXPECT_EQ(folder.read("data/out.tsv"), "sound");
}

TEST_F(DropboxTest, ACrashAnywhereOnTheWayIsMended) {
  // Taken, but not yet said so: it is a job still.
  folder.write("box/taken.job.submitted", job());
  // Accepted, its folder not begun.
  start();
  drop("x.job", job("copy", "x.tsv"));
  std::map<std::string, DropboxTask> tasks;
  for (int i = 0; i < 2; ++i) {
    DropboxTask task = port.next_task();
    tasks.emplace(task.name, std::move(task));
  }
  ASSERT_TRUE(tasks.contains("taken.job"));
  box.reset();
  std::filesystem::remove(tasks.at("x.job").directory + "/job.sh");
  start();
  for (int i = 0; i < 2; ++i) run(port.next_task());
  EXPECT_EQ(finished("x.job").find("job")->find("status")->text, "ok");
  EXPECT_EQ(finished("taken.job").find("job")->find("status")->text, "ok");
  box.reset();
  // The result was written, only the last rename is missing.
  std::filesystem::rename(folder / "box/x.job.finished", folder / "box/x.job.submitted");
  start();
  EXPECT_EQ(finished("x.job").find("job")->find("status")->text, "ok");
  EXPECT_TRUE(port.is_quiet());
}

TEST_F(DropboxTest, TheSameNameAgain) {
  start();
  drop("x.job", job());
  const DropboxTask first = port.next_task();
  drop("x.job", job());
  wait_for("x.job.ignored");
  run(first);
  finished("x.job");
  drop("x.job", job());
  const DropboxTask second = port.next_task();
  EXPECT_NE(second.key, first.key) << "after the first has ended it is a new job";
  EXPECT_FALSE(folder.has("box/x.job.finished")) << "the old result would be taken for the new one";
}

TEST_F(DropboxTest, OnlySoManyAtOnce) {
  options.most_active = 2;
  start();
  for (int i = 0; i < 5; ++i)
    drop("j" + std::to_string(i) + ".job", job("copy", std::to_string(i) + ".tsv"));
  for (int i = 0; i < 5; ++i) run(port.next_task());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(finished("j" + std::to_string(i) + ".job").find("job")->find("status")->text, "ok");
  }
}

TEST_F(DropboxTest, OneUsersManyJobsLeaveRoomForAnothers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can make files of others";
  options.most_active_of_one = 1;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  folder.make("his");
  ASSERT_EQ(::chown((folder / "his").c_str(), 12345, 12345), 0);
  start();
  for (const char* name : {"a.job", "b.job", "c.job"}) drop(name, job("copy", name));
  const DropboxTask first = port.next_task();
  std::string text = job();
  text.replace(text.find("data/out.tsv"), 12, "his/out.tsv");
  folder.write("box/x.new", text);
  ASSERT_EQ(::chown((folder / "box/x.new").c_str(), 12345, 12345), 0);
  std::filesystem::rename(folder / "box/x.new", folder / "box/z.job");
  const DropboxTask his = port.next_task();
  EXPECT_EQ(his.name, "z.job");
  EXPECT_TRUE(port.is_quiet()) << "the others wait";
  run(his);
  EXPECT_EQ(finished("z.job").find("job")->find("status")->text, "ok");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "his/out.tsv").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12345U);
  run(first);
  run(port.next_task());
  run(port.next_task());
  for (const char* name : {"a.job", "b.job", "c.job"}) finished(name);
}

TEST_F(DropboxTest, AJobsDocumentsHaveNoMoreReadersThanItself) {
  start();
  const auto mode_of = [&](const std::string& name) {
    struct stat status {};
    EXPECT_EQ(::stat((folder / ("box/" + name)).c_str(), &status), 0) << name;
    return status.st_mode & 0777U;
  };
  for (const mode_t mode : {0600U, 0400U, 0640U, 0604U, 0644U}) {
    const mode_t wanted = mode == 0644U || mode == 0640U ? mode : 0600U;
    folder.write("box/x.new", job());
    ASSERT_EQ(::chmod((folder / "box/x.new").c_str(), mode), 0);
    std::filesystem::rename(folder / "box/x.new", folder / "box/x.job");
    const DropboxTask task = port.next_task();
    EXPECT_EQ(mode_of("x.job.submitted"), wanted) << mode;
    run(task);
    finished("x.job");
    EXPECT_EQ(mode_of("x.job.finished"), wanted) << mode;
    std::filesystem::remove(folder / "box/x.job.finished");
  }
  folder.write("box/y.new", "- no job\n");
  ASSERT_EQ(::chmod((folder / "box/y.new").c_str(), 0600), 0);
  std::filesystem::rename(folder / "box/y.new", folder / "box/y.job");
  finished("y.job");
  EXPECT_EQ(mode_of("y.job.finished"), 0600U);
}

TEST_F(DropboxTest, InputsHaveALimit) {
  options.input_limit = 4;
  start();
  drop("x.job", job());
  EXPECT_THAT(finished("x.job").find("job")->find("message")->text, HasSubstr("input_too_large"));
}

TEST_F(DropboxTest, AnotherUsersJobMayNotNameATool) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can make files of others";
  start();
  folder.write("box/x.new", job("segmenter"));
  ASSERT_EQ(::chown((folder / "box/x.new").c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chown((folder / "data").c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  std::filesystem::rename(folder / "box/x.new", folder / "box/x.job");
  EXPECT_THAT(finished("x.job").find("job")->find("message")->text,
              HasSubstr("may name templates only"));
  EXPECT_TRUE(port.is_quiet());
}

TEST_F(DropboxTest, AnotherUsersJobMayNotSetWhatTheDropboxSets) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can make files of others";
  start();
  ASSERT_EQ(::chown((folder / "data").c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  const auto job_of_another = [&](const std::string& name, const std::string& from,
                                  const std::string& to) {
    std::string text = job();
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    folder.write("box/x.new", text);
    ASSERT_EQ(::chown((folder / "box/x.new").c_str(), 12345, 12345), 0);
    std::filesystem::rename(folder / "box/x.new", folder / ("box/" + name));
  };
  const auto refusal = [&](const std::string& name) {
    return finished(name).find("job")->find("message")->text;
  };
  job_of_another("a.job", "level: 6", "level: 6, containers: /home/another");
  EXPECT_THAT(refusal("a.job"), HasSubstr("'containers' is set by the drop box"));
  job_of_another("b.job", "level: 6", "level: 6, workspace: /home/another");
  EXPECT_THAT(refusal("b.job"), HasSubstr("'workspace' is set by the drop box"));
  job_of_another("c.job", "input_map: {", "input_map: {containers: " + (folder / "data/a.wav, "));
  EXPECT_THAT(refusal("c.job"), HasSubstr("'containers' is set by the drop box"));
  job_of_another("d.job", "output_map: {", "output_map: {workspace: " + (folder / "data/b, "));
  EXPECT_THAT(refusal("d.job"), HasSubstr("'workspace' is set by the drop box"));
  job_of_another("f.job", "level: 6", "level: '$(id)'");
  EXPECT_THAT(refusal("f.job"), HasSubstr("may hold only letters"));
  EXPECT_TRUE(port.is_quiet());
  job_of_another("e.job", "", "");
  EXPECT_EQ(port.next_task().name, "e.job");
}

TEST_F(DropboxTest, OurOwnJobMayGiveAVariable) {
  start();
  std::string text = job();
  text.replace(text.find("level: 6"), 8, "level: 6, containers: /other");
  drop("x.job", text);
  const DropboxTask task = port.next_task();
  EXPECT_THAT(folder.read("work" + task.directory.substr((folder / "work").size()) + "/job.sh"),
              HasSubstr("# 6 /other\n"));
}

TEST_F(DropboxTest, LinksFoldersAndForgedFilesAreLeftAlone) {
  folder.write("elsewhere", job());
  std::filesystem::create_symlink(folder / "elsewhere", folder / "box/link.job");
  folder.make("box/folder.job");
  ASSERT_EQ(::mkfifo((folder / "box/fifo.job").c_str(), 0600), 0);
  folder.write("box/forged.job.submitted",
               "hpc: {workspace: " + folder.path() +
                   ", key: k, owner: 0, input_map: {}, "
                   "output_map: {}}\nscript: copy\ninput_map: {}\noutput_map: {}\n");
  start();
  const Node forged = finished("forged.job");
  EXPECT_THAT(forged.find("job")->find("message")->text, HasSubstr("is not in the workspace"));
  EXPECT_TRUE(folder.has("elsewhere")) << "no folder but a job's own is ever removed";
  drop("x.job", job());
  EXPECT_EQ(port.next_task().name, "x.job");
  EXPECT_TRUE(folder.has("box/folder.job"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "box/link.job"));
}

TEST_F(DropboxTest, OurOwnDocumentIsNeverAJob) {
  start();
  drop("x.job", job());
  run(port.next_task());
  finished("x.job");
  std::filesystem::copy_file(folder / "box/x.job.finished", folder / "box/copy.new");
  std::filesystem::rename(folder / "box/x.job.finished", folder / "box/y.job");
  std::filesystem::rename(folder / "box/copy.new", folder / "box/z.job");
  for (const char* name : {"y.job", "z.job"}) {
    EXPECT_THAT(finished(name).find("job")->find("message")->text,
                HasSubstr("the drop box wrote it"));
  }
  EXPECT_TRUE(port.is_quiet());
}

TEST_F(DropboxTest, AFileThatOthersCanWriteOrThatHasTwoNamesIsNoJob) {
  start();
  folder.write("box/group.new", job());
  ASSERT_EQ(::chmod((folder / "box/group.new").c_str(), 0664), 0);
  std::filesystem::rename(folder / "box/group.new", folder / "box/group.job");
  EXPECT_THAT(finished("group.job").find("job")->find("message")->text, HasSubstr("chmod go-w"));
  folder.write("elsewhere", job());
  std::filesystem::create_hard_link(folder / "elsewhere", folder / "box/linked.job");
  const Node linked = finished("linked.job");
  EXPECT_THAT(linked.find("job")->find("message")->text, HasSubstr("hard link"));
  EXPECT_EQ(linked.find("script"), nullptr) << "what is nobody's word is not shown to everybody";
  EXPECT_TRUE(port.is_quiet());
}

TEST_F(DropboxTest, InASharedFolderNoFileCommandsTheEngine) {
  ASSERT_EQ(::chmod((folder / "box").c_str(), 01777), 0);
  start();
  drop("x.job", job());
  EXPECT_THAT(finished("x.job").find("job")->find("message")->text, HasSubstr("others than user"));
  EXPECT_TRUE(port.is_quiet());
}

TEST_F(DropboxTest, AFolderThatIsOpenedLaterServesNobody) {
  start();
  ASSERT_EQ(::chmod((folder / "box").c_str(), 0775), 0);
  drop("x.job", job());
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto is_told = [&] {
    const std::lock_guard lock(warnings_mutex);
    return warnings.find("chmod +t") != std::string::npos;
  };
  while (!is_told()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    std::this_thread::yield();
  }
  EXPECT_TRUE(folder.has("box/x.job"));
  EXPECT_TRUE(port.is_quiet());
  ASSERT_EQ(::chmod((folder / "box").c_str(), 0755), 0);
  EXPECT_EQ(port.next_task().name, "x.job") << "nothing is lost";
}

TEST_F(DropboxTest, JobsOfASharedFolderAreTakenUpAgainAndForgedOnesAreNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can make files of others";
  for (const char* name : {"", "box", "data"})
    ASSERT_EQ(::chmod((folder / name).c_str(), *name == 'b' ? 01777 : 0755), 0);
  ASSERT_EQ(::chown((folder / "data").c_str(), 12345, 12345), 0);
  start();
  folder.write("box/x.new", job());
  ASSERT_EQ(::chown((folder / "box/x.new").c_str(), 12345, 12345), 0);
  std::filesystem::rename(folder / "box/x.new", folder / "box/x.job");
  const DropboxTask task = port.next_task();
  box.reset();
  // Ours, as it came about through another's job: of another name, or of other words.
  const std::string document = folder.read("box/x.job.submitted");
  folder.write("box/y.job.submitted", document);
  folder.write("box/z.job.submitted", "hpc: {workspace: " + (folder / "work/h-1-2") +
                                          ", key: k, owner: 0, input_map: {}, output_map: {}}\n"
                                          "script: tool\ninput_map: {}\noutput_map: {}\n");
  std::string forged = document;
  forged.replace(forged.find("owner: 12345"), 12, "owner: 0");
  folder.write("box/x.job.submitted", forged);
  start();
  const DropboxTask again = port.next_task();
  EXPECT_EQ(again.key, task.key);
  run(again);
  const Node result = finished("x.job");
  EXPECT_EQ(result.find("job")->find("status")->text, "ok");
  EXPECT_EQ(result.find("hpc")->find("owner")->text, "12345") << "as we noted it ourselves";
  EXPECT_TRUE(port.is_quiet());
  EXPECT_TRUE(folder.has("box/y.job.submitted"));
  EXPECT_TRUE(folder.has("box/z.job.submitted"));
  box.reset();
  EXPECT_EQ(folders_in_work(), 0U) << "nothing is left behind";
}

TEST_F(DropboxTest, AnothersResultIsNotReplaced) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can make files of others";
  for (const char* name : {"", "box", "data"})
    ASSERT_EQ(::chmod((folder / name).c_str(), *name == 'b' ? 01777 : 0755), 0);
  options.allow = {folder / "data"};
  start();
  const auto drop_as = [&](uid_t user, const std::string& name, const std::string& text) {
    folder.write("box/" + name + ".new", text);
    ASSERT_EQ(::chown((folder / ("box/" + name + ".new")).c_str(), user, user), 0);
    std::filesystem::rename(folder / ("box/" + name + ".new"), folder / ("box/" + name));
  };
  drop_as(12345, "x.job", job());
  run(port.next_task());
  finished("x.job");
  struct stat status {};
  // It is given to him once it has its name.
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  do {
    ASSERT_EQ(::stat((folder / "box/x.job.finished").c_str(), &status), 0);
  } while (status.st_uid != 12345U && std::chrono::steady_clock::now() < late);
  EXPECT_EQ(status.st_uid, 12345U) << "it is his to remove";
  const std::string before = folder.read("box/x.job.finished");
  drop_as(12346, "x.job", job("copy", "other.tsv"));
  wait_for("x.job.ignored");
  drop_as(12346, "x.job", "rubbish");
  wait_for("x.job.ignored.2");
  drop("x.job", job());  // the engine's, as it may have published it elsewhere
  wait_for("x.job.ignored.3");
  EXPECT_EQ(folder.read("box/x.job.finished"), before);
  EXPECT_TRUE(port.is_quiet());
  drop_as(12345, "x.job", job("copy", "other.tsv"));
  EXPECT_EQ(port.next_task().name, "x.job") << "his own he may";
}

TEST(DropboxStart, SaysWhyNot) {
  const FolderOfTest folder;
  FakePort port;
  DropboxOptions options;
  options.directory = folder / "box";
  options.workspace = folder / "work";
  EXPECT_THAT(Dropbox::start(options, port).error().text, HasSubstr("No such file"));
  folder.make("box");
  ASSERT_EQ(::chmod((folder / "box").c_str(), 0777), 0);
  EXPECT_THAT(Dropbox::start(options, port).error().text, HasSubstr("chmod"));
  ASSERT_EQ(::chmod((folder / "box").c_str(), 01777), 0);
  EXPECT_TRUE(Dropbox::start(options, port));
  for (const mode_t mode : {0775U, 02770U, 0757U}) {
    ASSERT_EQ(::chmod((folder / "box").c_str(), mode), 0);
    EXPECT_THAT(Dropbox::start(options, port).error().text, HasSubstr("chmod"));
  }
  ASSERT_EQ(::chmod((folder / "box").c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder / "work").c_str(), 0777), 0);
  EXPECT_THAT(Dropbox::start(options, port).error().text, HasSubstr("workspace"));
}

}  // namespace
}  // namespace hpcbatch
