// Files go to a site and come back, over a real transport and the real program, with what may go
// wrong in between.
#include "staging/site_files.hpp"
#include "posix/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

/// What a transport is made to do wrong, and what it saw.  Used by its lane, its streams and the test.
struct Meddling {
  std::mutex mutex;
  int runs_that_fail{0};
  std::vector<std::uint64_t> cuts;  // after so many bytes, both ways together, a stream each
  std::function<void()> every_4_mb;
  std::atomic<std::uint64_t> bytes_there{0};
  std::atomic<std::uint64_t> bytes_here{0};
  bool is_cut_off{false};  // no transport can be made
};

/// Between the two ends of a stream, until one of them is closed or its bytes are over.
void stand_between(Fd here, Fd there, std::uint64_t left,
                   const std::shared_ptr<Meddling>& meddling) {
  std::string room(64 << 10, '\0');
  for (std::uint64_t passed = 0;;) {
    std::array<pollfd, 2> waits{{{here.get(), POLLIN, 0}, {there.get(), POLLIN, 0}}};
    ::poll(waits.data(), waits.size(), -1);
    const bool goes_there = waits[0].revents != 0;
    const ssize_t got = ::read(goes_there ? here.get() : there.get(), room.data(),
                               std::min<std::uint64_t>(room.size(), left));
    if (got <= 0 || write_all(goes_there ? there.get() : here.get(),
                              std::string_view(room).substr(0, static_cast<std::size_t>(got))) != 0)
      return;
    const auto bytes = static_cast<std::uint64_t>(got);
    left -= bytes;
    const bool is_time = (passed + bytes) >> 22 > passed >> 22;
    passed += bytes;
    const std::lock_guard lock(meddling->mutex);
    (goes_there ? meddling->bytes_there : meddling->bytes_here) += bytes;
    if (is_time && meddling->every_4_mb) meddling->every_4_mb();
    if (left == 0) return;
  }
}

/// A real one that is meddled with.
class MeddledTransport final : public Transport {
 public:
  MeddledTransport(std::unique_ptr<Transport> real, std::shared_ptr<Meddling> meddling)
      : real_(std::move(real)), meddling_(std::move(meddling)) {}
  ~MeddledTransport() override {
    for (std::thread& one : between_) one.join();
  }

  Result<CommandOutput> run(const CommandLine& command, Deadline deadline) override {
    {
      const std::lock_guard lock(meddling_->mutex);
      if (meddling_->runs_that_fail > 0) {
        --meddling_->runs_that_fail;
        return Error{Error::Kind::Transient, "the line was cut"};
      }
    }
    return real_->run(command, deadline);
  }
  Result<int> open(const CommandLine& command, Deadline deadline) override {
    auto stream = real_->open(command, deadline);
    std::array<int, 2> ends{};
    if (!stream || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return stream;
    std::uint64_t left = UINT64_MAX;
    {
      const std::lock_guard lock(meddling_->mutex);
      if (!meddling_->cuts.empty()) {
        left = meddling_->cuts.front();
        meddling_->cuts.erase(meddling_->cuts.begin());
      }
    }
    between_.emplace_back(
        [here = Fd(ends[1]), there = Fd(*stream), left, meddling = meddling_]() mutable {
          stand_between(std::move(here), std::move(there), left, meddling);
        });
    return ends[0];
  }

 private:
  std::unique_ptr<Transport> real_;
  std::shared_ptr<Meddling> meddling_;
  std::vector<std::thread> between_;
};

StageOwner task(std::uint32_t index) {
  return {ArrayId{7}, index};
}

class SiteFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    // As the engine.
    ::signal(SIGPIPE, SIG_IGN);
    std::string made = (fs::temp_directory_path() / "site-files-XXXXXX").string();
    directory_ = ::mkdtemp(made.data());
    site_.name = "far";
    site_.workspace = directory_ + "/workspace";
    fs::create_directories(site_.workspace);
    fs::create_directories(directory_ + "/in");
  }
  void TearDown() override {
    files_.reset();
    if (is_mounted_) ::umount2(site_.workspace.c_str(), MNT_DETACH);
    fs::remove_all(directory_);
  }

  SiteFiles& files() {
    if (!files_)
      files_ = std::make_unique<SiteFiles>(
          loop_,
          [this]() -> Result<std::unique_ptr<Transport>> {
            if (meddling_->is_cut_off) return Error{Error::Kind::Transient, "no way there"};
            auto real = plugins_.transport("shared_fs", "");
            if (!real) return real.error();
            return std::unique_ptr<Transport>(
                std::make_unique<MeddledTransport>(std::move(*real), meddling_));
          },
          site_, program_);
    return *files_;
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::string path = directory_ + "/in/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static mode_t mode_of(const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
    return facts.st_mode & 0777;
  }
  template <class Happened>
  void until(Happened happened) {
    for (const auto end = std::chrono::steady_clock::now() + 120s; !happened();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << files().figures().trouble;
      loop_.restart();
      loop_.run_one_for(100ms);
    }
  }
  void ask(std::vector<SiteFiles::Wanted> wanted) {
    for (const auto& one : wanted) open_.insert(one.owner);
    files().stage_in(std::move(wanted), [this](const SiteFiles::StageInResults& brought) {
      for (const auto& [owner, error] : brought) {
        EXPECT_EQ(open_.erase(owner), 1u) << "told twice, or not asked";
        errors_[owner] = error;
      }
    });
    EXPECT_FALSE(open_.empty()) << "no answer comes from within a call";
  }
  void bring(std::vector<SiteFiles::Wanted> wanted) {
    ask(std::move(wanted));
    until([this] { return open_.empty(); });
  }
  /// What comes of one file of one owner: a failure, or empty.
  std::string bring(const StageOwner& owner, const std::string& path) {
    bring({{owner, {path}}});
    return errors_[owner] ? std::string(to_string(errors_[owner]->failure)) : "";
  }
  std::string text_there(const StageOwner& owner, const std::string& path) {
    const auto place = files().place_of(owner, path);
    EXPECT_TRUE(place) << path;
    return place ? read(*place) : "";
  }
  std::vector<std::optional<StageError>> take(std::vector<SiteFiles::Taken> taken) {
    std::optional<std::vector<std::optional<StageError>>> answer;
    files().take(std::move(taken), [&](auto told) { answer = std::move(told); });
    EXPECT_FALSE(answer) << "no answer comes from within a call";
    until([&] { return answer.has_value(); });
    return answer.value_or(std::vector<std::optional<StageError>>{});
  }
  void mount_small(std::uint64_t bytes_beside_the_program) {
    const auto size = fs::file_size(HPCBATCH_PILOT) + bytes_beside_the_program;
    const std::string options = "mode=0700,size=" + std::to_string(size);
    is_mounted_ = ::mount("tmpfs", site_.workspace.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }

  asio::io_context loop_;
  PluginHost plugins_{{PLUGINS}};
  PilotProgram program_{HPCBATCH_PILOT};
  std::shared_ptr<Meddling> meddling_{std::make_shared<Meddling>()};
  std::string directory_;
  Site site_;
  bool is_mounted_{false};
  std::unique_ptr<SiteFiles> files_;
  std::set<StageOwner> open_;
  std::map<StageOwner, std::optional<StageError>> errors_;
};

const std::string kLargeText((std::size_t{9} << 20) + 7, 'L');

TEST_F(SiteFilesTest, AFileOfAThousandOwnersGoesOverOnce) {
  const std::string path = write("reference.fa", std::string(500'000, 'A'));
  std::vector<SiteFiles::Wanted> wanted;
  for (std::uint32_t i = 1; i <= 1000; ++i) wanted.push_back({task(i), {path}});
  bring(std::move(wanted));
  for (std::uint32_t i = 1; i <= 1000; ++i) ASSERT_FALSE(errors_[task(i)]) << i;
  EXPECT_EQ(text_there(task(1000), path), std::string(500'000, 'A'));
  EXPECT_EQ(files().figures().bytes_sent, 500'000u);
  EXPECT_EQ(files().figures().files_sent, 1u);
  EXPECT_LT(meddling_->bytes_there.load(), 510'000u);
  EXPECT_EQ(files().figures().store_bytes, 500'000u);
  // And later, from elsewhere too, not even a question.
  const auto exchanges = files().figures().exchanges;
  const std::string twin = write("copy/reference.fa", std::string(500'000, 'A'));
  EXPECT_EQ(bring(task(2000), path), "");
  EXPECT_EQ(bring(task(2001), twin), "");
  EXPECT_EQ(files().place_of(task(2001), twin), files().place_of(task(1), path));
  EXPECT_EQ(files().figures().exchanges, exchanges);
}

TEST_F(SiteFilesTest, ManyTinyFilesGoInAHandfulOfExchanges) {
  std::vector<SiteFiles::Wanted> wanted;
  for (std::uint32_t i = 1; i <= 5000; ++i)
    wanted.push_back({task(i), {write("tiny/" + std::to_string(i), "tiny " + std::to_string(i))}});
  const auto paths = wanted;
  bring(std::move(wanted));
  for (const auto& one : paths) {
    ASSERT_FALSE(errors_[one.owner]) << errors_[one.owner]->text;
    ASSERT_EQ(text_there(one.owner, one.paths[0]), read(one.paths[0]));
  }
  EXPECT_EQ(files().figures().files_sent, 5000u);
  EXPECT_LE(files().figures().exchanges, 12u);
}

TEST_F(SiteFilesTest, NamesBytesAndModesArriveAsTheyAre) {
  const std::string emoji = write("\xF0\x9F\x90\x8C.bam", "snail");
  const std::string longest = write(std::string(246, 'n') + ".fastq.gz", "long");
  const std::string lines = write("two\nlines.txt", "lines");
  const std::string option = write("-rf", "option");
  const std::string empty = write("empty", "");
  const std::string zeros = write("zeros", std::string(1000, '\0'));
  const std::string tool = write("tool", "#!/bin/sh\n");
  fs::permissions(tool, fs::perms(0755));
  const std::string large = write("large.bin", kLargeText);
  const std::string large_tool = write("large-tool", kLargeText);
  fs::permissions(large_tool, fs::perms(0700));
  const std::vector<std::string> all{emoji, longest, lines, option,    empty,
                                     zeros, tool,    large, large_tool};
  bring({{task(1), all}});
  ASSERT_FALSE(errors_[task(1)]) << errors_[task(1)]->text;
  for (const std::string& path : all) {
    EXPECT_EQ(text_there(task(1), path), read(path)) << path;
    const bool executable = path == tool || path == large_tool;
    EXPECT_EQ(mode_of(*files().place_of(task(1), path)), executable ? 0500u : 0400u) << path;
  }
  const auto name = [&](const std::string& path) {
    return fs::path(*files().place_of(task(1), path)).filename().string();
  };
  EXPECT_EQ(name(emoji), "\xF0\x9F\x90\x8C.bam");
  EXPECT_EQ(name(longest), std::string(191, 'n') + ".fastq.gz");
  EXPECT_EQ(name(lines), "two_lines.txt");
  EXPECT_EQ(name(option), "_rf");
  EXPECT_FALSE(fs::exists(site_.workspace + "/files/incoming/lost"));
}

TEST_F(SiteFilesTest, AFileBecomesExecutableWhereSomebodyWantsItSo) {
  const std::string plain = write("a/tool", "#!/bin/sh\n");
  const std::string program = write("b/tool", "#!/bin/sh\n");
  fs::permissions(program, fs::perms(0755));
  EXPECT_EQ(bring(task(1), plain), "");
  EXPECT_EQ(mode_of(*files().place_of(task(1), plain)), 0400u);
  EXPECT_EQ(bring(task(2), program), "");
  EXPECT_EQ(mode_of(*files().place_of(task(2), program)), 0500u);
  EXPECT_EQ(files().figures().files_sent, 1u);
}

TEST_F(SiteFilesTest, WhatCannotBeReadConcernsItsOwnersAlone) {
  const std::string good = write("good", "good");
  fs::create_directory(directory_ + "/in/folder");
  fs::create_symlink(directory_ + "/nowhere", directory_ + "/in/dangling");
  ASSERT_EQ(::mkfifo((directory_ + "/in/pipe").c_str(), 0600), 0);
  bring({{task(1), {good}},
         {task(2), {good, directory_ + "/in/none"}},
         {task(3), {directory_ + "/in/folder"}},
         {task(4), {directory_ + "/in/dangling"}},
         {task(5), {directory_ + "/in/pipe"}},
         {{ArrayId{8}, std::nullopt}, {}}});
  EXPECT_FALSE(errors_[task(1)]);
  EXPECT_FALSE(errors_[(StageOwner{ArrayId{8}, std::nullopt})]);
  for (std::uint32_t i = 2; i <= 5; ++i) {
    ASSERT_TRUE(errors_[task(i)]) << i;
    EXPECT_EQ(errors_[task(i)]->failure, Failure::InputMissing) << i;
    EXPECT_FALSE(errors_[task(i)]->can_be_tried_again);
    EXPECT_THAT(errors_[task(i)]->text, HasSubstr(directory_ + "/in/"));
  }
  EXPECT_FALSE(files().place_of(task(2), good)) << "it holds nothing";
}

TEST_F(SiteFilesTest, WhatChangesWhileItIsSentIsReadAgainOnce) {
  const std::string path = write("growing", kLargeText);
  std::atomic<int> changes{1};
  meddling_->every_4_mb = [&] {
    if (changes-- > 0) std::ofstream(path, std::ios::app) << "more";
  };
  EXPECT_EQ(bring(task(1), path), "");
  EXPECT_EQ(text_there(task(1), path), kLargeText + "more");
  changes = 1000;
  std::ofstream(path, std::ios::app) << "and more";
  EXPECT_EQ(bring(task(2), path), "input_changed");
  EXPECT_FALSE(errors_[task(2)]->can_be_tried_again);
  EXPECT_THAT(errors_[task(2)]->text, HasSubstr(path));
}

TEST_F(SiteFilesTest, ALineThatIsCutIsTriedAgainAndTheOwnersWait) {
  const std::string small = write("small", "small");
  const std::string large = write("large", kLargeText);
  meddling_->runs_that_fail = 1;
  meddling_->cuts = {100, 1u << 20, 5u << 20};
  bring({{task(1), {small}}, {task(2), {large}}});
  EXPECT_FALSE(errors_[task(1)]);
  EXPECT_FALSE(errors_[task(2)]);
  EXPECT_EQ(text_there(task(2), large), kLargeText);
  EXPECT_EQ(files().figures().trouble, "");
  EXPECT_TRUE(meddling_->cuts.empty());
  EXPECT_LT(meddling_->bytes_there.load(), kLargeText.size() + (4u << 20))
      << "it goes on where it was cut";
}

TEST_F(SiteFilesTest, ALargeFileTellsHowFarItHasCome) {
  const std::string first = write("first", kLargeText);
  const std::string second = write("second", kLargeText + "2");
  std::atomic<bool> goes_on{false};
  meddling_->every_4_mb = [&] {
    while (!goes_on) std::this_thread::sleep_for(1ms);
  };
  ask({{task(1), {first}}, {task(2), {second}}});
  until([this] {
    const auto now = files().figures();
    return now.copy && now.copy->moved >= 4u << 20 && now.to_send == 1;
  });
  const auto now = files().figures();
  EXPECT_TRUE(now.copy->is_sent);
  EXPECT_LT(now.copy->moved, now.copy->size);
  EXPECT_EQ(now.copy->begun_at, 0u);
  EXPECT_THAT(now.copy_in_words(), HasSubstr(" is on its way to the site, "));
  EXPECT_THAT(now.copy_in_words(), HasSubstr("M of 9.0M"));
  EXPECT_THAT(now.copy_in_words(), EndsWith("; 1 file waits behind it"));
  goes_on = true;
  until([this] { return open_.empty(); });
  EXPECT_FALSE(files().figures().copy);
  EXPECT_EQ(files().figures().copy_in_words(), "");
}

TEST_F(SiteFilesTest, WhoIsLetGoMeanwhileIsToldSo) {
  meddling_->is_cut_off = true;
  const std::string path = write("small", "small");
  ask({{task(1), {path}}, {task(2), {path}}});
  until([this] { return files().figures().trouble == "no way there"; });
  files().let_go(task(1));
  until([this] { return open_.size() == 1; });
  ASSERT_TRUE(errors_[task(1)]);
  EXPECT_TRUE(errors_[task(1)]->can_be_tried_again);
  meddling_->is_cut_off = false;
  until([this] { return open_.empty(); });
  EXPECT_FALSE(errors_[task(2)]);
}

TEST_F(SiteFilesTest, ALaterEngineKnowsTheStore) {
  const std::string path = write("reference.fa", std::string(1000, 'A'));
  const std::string large = write("large", kLargeText);
  bring({{task(1), {path, large}}});
  files_.reset();
  bring({{task(1), {path, large}}});
  EXPECT_FALSE(errors_[task(1)]);
  EXPECT_EQ(files().figures().files_sent, 0u);
  EXPECT_EQ(files().figures().store_files, 2u);
  EXPECT_EQ(files().figures().store_bytes, 1000u + kLargeText.size());
}

TEST_F(SiteFilesTest, WhatATaskDidNotFindIsMadeSureOfAndSentAgain) {
  const std::string path = write("x", "x");
  EXPECT_EQ(bring(task(1), path), "");
  const std::string place = *files().place_of(task(1), path);
  fs::remove(place);
  files().forget_there(place);
  EXPECT_EQ(bring(task(1), path), "");
  EXPECT_EQ(read(place), "x");
  EXPECT_EQ(files().figures().files_sent, 2u);
}

TEST_F(SiteFilesTest, BeyondTheLimitWhatNobodyHoldsGoesOldestFirst) {
  site_.store_limit = 2500;
  const std::string a = write("a", std::string(1000, 'a'));
  const std::string b = write("b", std::string(1000, 'b'));
  const std::string c = write("c", std::string(1000, 'c'));
  const std::string d = write("d", std::string(2000, 'd'));
  EXPECT_EQ(bring(task(1), a), "");
  const std::string place_a = *files().place_of(task(1), a);
  EXPECT_EQ(bring(task(2), b), "");
  EXPECT_EQ(bring(task(3), c), "stage_in_failed") << "both are held";
  EXPECT_TRUE(errors_[task(3)]->can_be_tried_again);
  EXPECT_THAT(errors_[task(3)]->text, HasSubstr("2500"));
  files().let_go(task(1));
  files().keep_all(true);
  EXPECT_EQ(bring(task(3), c), "stage_in_failed") << "tasks of an engine before may need it";
  files().keep_all(false);
  EXPECT_EQ(bring(task(3), c), "");
  EXPECT_FALSE(fs::exists(place_a));
  EXPECT_FALSE(fs::exists(fs::path(place_a).parent_path()));
  EXPECT_TRUE(fs::exists(*files().place_of(task(2), b)));
  EXPECT_EQ(bring(task(4), d), "stage_in_failed");
  files().let_go(task(2));
  files().let_go(task(3));
  EXPECT_EQ(bring(task(4), d), "");
  EXPECT_EQ(files().figures().store_bytes, 2000u);
}

TEST_F(SiteFilesTest, OnAFullDiskWhatNobodyHoldsGoesAndItIsTriedOnce) {
  mount_small(4u << 20);
  if (!is_mounted_) GTEST_SKIP() << "nothing can be mounted here";
  const std::string old = write("old", std::string(2u << 20, 'o'));
  const std::string fresh = write("fresh", std::string(3u << 20, 'f'));
  const std::string small = write("small", std::string(900u << 10, 's'));
  const std::string more = write("more", std::string(900u << 10, 'm'));
  EXPECT_EQ(bring(task(1), old), "");
  EXPECT_EQ(bring(task(2), fresh), "stage_in_failed");
  EXPECT_TRUE(errors_[task(2)]->can_be_tried_again);
  EXPECT_THAT(errors_[task(2)]->text, HasSubstr("disk full on far: " + site_.workspace));
  EXPECT_THAT(errors_[task(2)]->text, HasSubstr("3145728 bytes wanted"));
  files().let_go(task(1));
  EXPECT_EQ(bring(task(2), fresh), "") << errors_[task(2)]->text;
  EXPECT_EQ(bring(task(3), small), "") << errors_[task(3)]->text;
  EXPECT_EQ(bring(task(4), more), "stage_in_failed");
  EXPECT_THAT(errors_[task(4)]->text, HasSubstr("disk full on far"));
  EXPECT_THAT(errors_[task(4)]->text, HasSubstr("921600 bytes wanted"));
  files().let_go(task(3));
  EXPECT_EQ(bring(task(4), more), "") << errors_[task(4)]->text;
}

TEST_F(SiteFilesTest, AStoreThatIsOfNoUseIsToldToThoseWhoWait) {
  write("elsewhere/file", "x");
  fs::create_symlink(directory_ + "/in/elsewhere", site_.workspace + "/files");
  EXPECT_EQ(bring(task(1), write("a", "a")), "stage_in_failed");
  EXPECT_THAT(errors_[task(1)]->text, HasSubstr("link"));
}

TEST_F(SiteFilesTest, ResultsComeBackWholeWithTheirModes) {
  const std::string out = site_.workspace + "/out/7.1";
  fs::create_directories(out);
  std::ofstream(out + "/small") << "small";
  fs::permissions(out + "/small", fs::perms(0640));
  std::ofstream(out + "/empty") << "";
  std::ofstream(out + "/large") << kLargeText;
  fs::permissions(out + "/large", fs::perms(0755));
  fs::create_symlink("/etc/passwd", out + "/link");
  const std::string here = directory_ + "/results/deep";
  const auto errors = take({{out + "/small", here + "/small"},
                            {out + "/large", here + "/large"},
                            {out + "/empty", here + "/empty"},
                            {out + "/none", here + "/none"},
                            {out + "/link", here + "/link"},
                            {"/etc/passwd", here + "/passwd"},
                            {site_.workspace + "/../x", here + "/x"},
                            {out + "/small", "/proc/none/small"}});
  ASSERT_EQ(errors.size(), 8u);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(errors[static_cast<std::size_t>(i)]) << i;
  for (std::size_t i = 3; i < 8; ++i) {
    ASSERT_TRUE(errors[i]) << i;
    EXPECT_EQ(errors[i]->failure, i == 3 ? Failure::OutputMissing : Failure::StageOutFailed);
    EXPECT_FALSE(errors[i]->can_be_tried_again) << errors[i]->text;
  }
  EXPECT_EQ(read(here + "/small"), "small");
  EXPECT_EQ(mode_of(here + "/small"), 0640u);
  EXPECT_EQ(read(here + "/large"), kLargeText);
  EXPECT_EQ(mode_of(here + "/large"), 0755u);
  EXPECT_EQ(std::distance(fs::directory_iterator(here), {}), 3) << "nothing is left beside them";
  EXPECT_EQ(files().figures().bytes_taken, 5 + kLargeText.size());
  EXPECT_EQ(files().figures().files_taken, 3u);
}

TEST_F(SiteFilesTest, AResultThatIsCutOffGoesOnWhereItWasCut) {
  const std::string out = site_.workspace + "/out/7.1";
  fs::create_directories(out);
  std::ofstream(out + "/large") << kLargeText;
  EXPECT_FALSE(take({{out + "/none", directory_ + "/none"}})[0]->can_be_tried_again);
  meddling_->cuts = {5u << 20};
  EXPECT_FALSE(take({{out + "/large", directory_ + "/large"}})[0]);
  EXPECT_EQ(read(directory_ + "/large"), kLargeText);
  EXPECT_TRUE(meddling_->cuts.empty());
  EXPECT_LT(meddling_->bytes_here.load(), kLargeText.size() + (2u << 20));
}

TEST_F(SiteFilesTest, WhatIsDroppedIsGoneThere) {
  const std::string out = site_.workspace + "/out/7.1";
  fs::create_directories(out + "/deep");
  std::ofstream(out + "/deep/file") << "x";
  fs::create_directories(site_.workspace + "/logs");
  files().drop({out, site_.workspace + "/logs", "/etc/passwd"});
  until([&] { return !fs::exists(out); });
  EXPECT_TRUE(fs::exists(site_.workspace + "/logs"));
  EXPECT_EQ(take({}).size(), 0u);
}

TEST_F(SiteFilesTest, ItMayEndWithMuchOnItsWay) {
  std::vector<SiteFiles::Wanted> wanted;
  for (std::uint32_t i = 1; i <= 50; ++i)
    wanted.push_back({task(i), {write(std::to_string(i), kLargeText + std::to_string(i))}});
  files().stage_in(std::move(wanted),
                   [](const SiteFiles::StageInResults&) { FAIL() << "nobody is told"; });
  for (int i = 0; i < 3; ++i) loop_.run_one_for(100ms);
  files_.reset();
  loop_.restart();
  loop_.run_for(200ms);
}

}  // namespace
}  // namespace hpcbatch
