// One exchange of files on a site: the store, what is taken from there and what is removed.
#include "posix/files.hpp"
#include "pilot/site/file_service.hpp"
#include "wire/file_store.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace hpcbatch::pilot {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using wire::FileTrouble;

std::string hash(char digit) {
  return std::string(wire::kHashDigits, digit);
}

class FilesTest : public testing::Test {
 public:
  ~FilesTest() override { fs::remove_all(directory_); }

 protected:
  FilesTest() {
    std::string made = (fs::temp_directory_path() / "files-XXXXXX").string();
    directory_ = ::mkdtemp(made.data());
    order_.set_largest_taken(1000);
    order_.set_most_bytes(1 << 20);
  }

  std::string at(const std::string& path) const { return directory_ + "/" + path; }
  std::string text_of(const std::string& path) const {
    std::ifstream in(at(path));
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(at(path)).parent_path());
    std::ofstream(at(path)) << text;
  }
  mode_t mode_of(const std::string& path) const {
    struct stat facts {};
    EXPECT_EQ(::lstat(at(path).c_str(), &facts), 0) << path;
    return facts.st_mode & 07777;
  }
  void put(const std::string& key, const std::string& data, bool executable = false) {
    auto* one = order_.add_put();
    one->set_key(key);
    one->set_data(data);
    one->set_executable(executable);
  }
  static void known(wire::FilesOrder::Known* one, const std::string& key, std::uint64_t size) {
    one->set_key(key);
    one->set_received(key);
    one->set_size(size);
  }
  wire::FilesReport happens() {
    auto report = exchange_files(directory_, order_);
    EXPECT_TRUE(report) << (report ? "" : report.error().text);
    order_.clear_put();
    order_.clear_have();
    order_.clear_adopt();
    order_.clear_take();
    order_.clear_drop();
    return report ? *report : wire::FilesReport();
  }
  static FileTrouble trouble(const wire::FilesReport::Done& done) {
    return static_cast<FileTrouble>(done.trouble());
  }

  std::string directory_;
  wire::FilesOrder order_;
};

TEST_F(FilesTest, WhatIsPutIsThereWithItsBytesAndMode) {
  const std::string data = wire::store_key(hash('a'), "data.tar.gz");
  const std::string tool = wire::store_key(hash('b'), "tool");
  put(data, "some bytes");
  put(tool, "#!/bin/sh\n", true);
  put(wire::store_key(hash('c'), "empty"), "");
  const auto report = happens();
  ASSERT_EQ(report.put_size(), 3);
  for (const auto& done : report.put()) EXPECT_EQ(trouble(done), FileTrouble::None) << done.text();
  EXPECT_EQ(text_of("files/aa/" + data), "some bytes");
  EXPECT_EQ(mode_of("files/aa/" + data), 0400u);
  EXPECT_EQ(mode_of("files/bb/" + tool), 0500u);
  EXPECT_EQ(fs::file_size(at("files/cc/" + hash('c') + "/empty")), 0u);
  for (const char* folder : {"files", "files/aa", "files/incoming"})
    EXPECT_EQ(mode_of(folder), 0700u) << folder;
  EXPECT_TRUE(fs::is_empty(at("files/incoming")));
  EXPECT_GT(report.free_bytes(), 0u);
  EXPECT_GT(report.free_files(), 0u);
}

TEST_F(FilesTest, AFileIsThereOnlyWithItsSizeAndThenCountsAsUsed) {
  const std::string key = wire::store_key(hash('a'), "x");
  put(key, "12345");
  happens();
  const fs::path place = at(wire::place_of_key(key));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(100);
  fs::last_write_time(place, old);
  known(order_.add_have(), key, 5);
  known(order_.add_have(), key, 6);
  known(order_.add_have(), wire::store_key(hash('f'), "x"), 5);
  known(order_.add_have(), "../../etc/passwd", 5);
  order_.mutable_have(0)->set_executable(true);
  const auto report = happens();
  EXPECT_EQ(trouble(report.have(0)), FileTrouble::None);
  EXPECT_EQ(trouble(report.have(1)), FileTrouble::Absent);
  EXPECT_EQ(trouble(report.have(2)), FileTrouble::Absent);
  EXPECT_EQ(trouble(report.have(3)), FileTrouble::Refused);
  EXPECT_GT(fs::last_write_time(place), old + std::chrono::hours(99));
  EXPECT_EQ(mode_of(wire::place_of_key(key)), 0500u) << "who asked wants to execute it";
}

TEST_F(FilesTest, WhatThePlaceHoldsAndIsWrongIsReplaced) {
  const std::string key = wire::store_key(hash('a'), "x");
  write("files/aa/" + key, "torn");
  const std::string other = wire::store_key(hash('b'), "x");
  write("files/bb/" + other + "/folder/file", "?");
  const std::string link = wire::store_key(hash('c'), "x");
  write("mine", "precious");
  fs::create_directories(at("files/cc/" + hash('c')));
  fs::create_symlink(at("mine"), at("files/cc/" + link));
  for (const std::string& one : {key, other, link}) put(one, "whole text");
  const auto report = happens();
  for (const auto& done : report.put()) EXPECT_EQ(trouble(done), FileTrouble::None) << done.text();
  for (const std::string& one : {key, other, link})
    EXPECT_EQ(text_of(wire::place_of_key(one)), "whole text");
  EXPECT_EQ(text_of("mine"), "precious");
}

TEST_F(FilesTest, WhatWasPutAsideIsAdoptedOnceAndMayBeAskedForTwice) {
  const std::string key = wire::store_key(hash('a'), "big");
  write(wire::incoming_of_key(key), "many bytes");
  known(order_.add_adopt(), key, 10);
  known(order_.add_adopt(), wire::store_key(hash('b'), "big"), 10);
  auto report = happens();
  EXPECT_EQ(trouble(report.adopt(0)), FileTrouble::None) << report.adopt(0).text();
  EXPECT_EQ(trouble(report.adopt(1)), FileTrouble::Absent);
  EXPECT_EQ(text_of(wire::place_of_key(key)), "many bytes");
  EXPECT_EQ(mode_of(wire::place_of_key(key)), 0400u);
  EXPECT_FALSE(fs::exists(at("files/incoming/" + hash('a'))));
  known(order_.add_adopt(), key, 10);
  report = happens();
  EXPECT_EQ(trouble(report.adopt(0)), FileTrouble::None) << report.adopt(0).text();
}

TEST_F(FilesTest, NamesStayWhatTheyAreWhereTheyDoNoHarm) {
  const std::string emoji = "\xF0\x9F\x90\x8C slow.bam";
  EXPECT_EQ(wire::stored_name("/data/" + emoji), emoji);
  EXPECT_EQ(wire::stored_name("/data/-rf"), "_rf");
  EXPECT_EQ(wire::stored_name("/data/two\nlines.txt"), "two_lines.txt");
  EXPECT_EQ(wire::stored_name(".."), "_");
  EXPECT_EQ(wire::stored_name("/data/.condarc"), ".condarc");
  EXPECT_EQ(wire::stored_name("bad\xFF.bin"), "bad\xFF.bin");
  const std::string longest = std::string(244, 'n') + ".fastq.gz";
  EXPECT_EQ(wire::stored_name(longest), std::string(191, 'n') + ".fastq.gz");
  std::string letters;
  while (letters.size() < 252) letters += "\xC3\xA9";
  const std::string cut = wire::stored_name("a" + letters);
  EXPECT_EQ(cut.size(), 199u) << "a letter is not cut through";
  for (const std::string& name : {emoji, longest, letters, std::string("-"), std::string("\x7F")})
    EXPECT_TRUE(wire::is_store_key(wire::store_key(hash('0'), wire::stored_name(name)))) << name;
  for (const std::string& name : {emoji, std::string("bad\xFF.bin"), wire::stored_name(longest)})
    put(wire::store_key(hash('0'), name), name);
  put(wire::store_key(hash('0'), "a/b"), "");
  put(wire::store_key(hash('0'), ".."), "");
  put(wire::store_key(hash('0'), "-x"), "");
  const auto report = happens();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(trouble(report.put(i)), i < 3 ? FileTrouble::None : FileTrouble::Refused) << i;
  EXPECT_EQ(text_of("files/00/" + hash('0') + "/" + emoji), emoji);
}

TEST_F(FilesTest, TheStoreIsListedInPages) {
  std::vector<std::string> keys;
  for (const char digit : {'a', 'b', 'c'}) {
    for (const char* name : {"x", "y"}) keys.push_back(wire::store_key(hash(digit), name));
  }
  for (const std::string& key : keys) put(key, "123", key.ends_with("y"));
  happens();
  write("files/aa/stray", "");
  write("files/zz/" + hash('d'), "");
  fs::last_write_time(at(wire::place_of_key(keys[0])),
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  std::vector<std::string> listed;
  order_.set_list_most(4);
  auto report = happens();
  EXPECT_FALSE(report.list_ended());
  EXPECT_NEAR(static_cast<double>(report.entries(0).unused_s()), 7200, 600);
  EXPECT_FALSE(report.entries(0).executable());
  EXPECT_TRUE(report.entries(1).executable());
  for (const auto& entry : report.entries()) listed.push_back(entry.key());
  order_.set_list_after(listed.back());
  report = happens();
  EXPECT_TRUE(report.list_ended());
  for (const auto& entry : report.entries()) listed.push_back(entry.key());
  EXPECT_EQ(listed, keys);
}

TEST_F(FilesTest, WhatWasNeverAdoptedGoesAfterADay) {
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(30);
  write("files/incoming/aside-1-1", "");
  write("files/incoming/" + hash('a') + "/old", "");
  write("files/incoming/" + hash('b') + "/new", "");
  for (const std::string& name :
       {std::string("aside-1-1"), hash('a') + "/old", hash('a'), hash('b')})
    fs::last_write_time(at("files/incoming/" + name), old);
  order_.set_list_most(10);
  happens();
  EXPECT_FALSE(fs::exists(at("files/incoming/aside-1-1")));
  EXPECT_FALSE(fs::exists(at("files/incoming/" + hash('a'))));
  EXPECT_TRUE(fs::exists(at("files/incoming/" + hash('b') + "/new")));
}

TEST_F(FilesTest, SmallResultsComeBackAndLargeOnesSayTheirSize) {
  write("out/1/result.txt", "hello");
  fs::permissions(at("out/1/result.txt"), fs::perms(0640));
  write("out/1/empty", "");
  write("out/1/large", std::string(1001, 'x'));
  for (const char* path : {"out/1/result.txt", "out/1/empty", "out/1/large", "out/1/none"})
    order_.add_take(path);
  const auto report = happens();
  ASSERT_EQ(report.take_size(), 4);
  EXPECT_EQ(report.take(0).data(), "hello");
  EXPECT_EQ(report.take(0).mode(), 0640u);
  EXPECT_EQ(trouble(report.take(1).done()), FileTrouble::None);
  EXPECT_EQ(report.take(1).data(), "");
  EXPECT_TRUE(report.take(2).too_large());
  EXPECT_EQ(report.take(2).size(), 1001u);
  EXPECT_EQ(report.take(2).data(), "");
  EXPECT_EQ(trouble(report.take(3).done()), FileTrouble::Absent);
}

TEST_F(FilesTest, WhatDoesNotFitIntoOneReportIsLeftForTheNext) {
  for (const char* path : {"out/a", "out/b", "out/c"}) {
    write(path, std::string(400, 'x'));
    order_.add_take(path);
  }
  order_.set_most_bytes(900);
  EXPECT_EQ(happens().take_size(), 2);
  order_.add_take("out/a");
  order_.set_most_bytes(10);
  EXPECT_EQ(happens().take_size(), 1) << "one goes in any case";
}

TEST_F(FilesTest, NothingIsTakenThroughLinksOrFromOutside) {
  write("secret", "secret");
  const std::string outside = directory_ + ".outside";
  std::ofstream(outside) << "outside";
  write("out/1/real", "real");
  fs::create_symlink(outside, at("out/1/link"));
  fs::create_symlink("/", at("out/root"));
  fs::create_symlink("1", at("out/alias"));
  ASSERT_EQ(::mkfifo(at("out/1/pipe").c_str(), 0600), 0);
  for (const char* path : {"out/1/link", "out/root/etc/passwd", "out/alias/real", "out/1/pipe",
                           "out/1", "../x", "out/../secret", "/etc/passwd", "out//1/real", ""})
    order_.add_take(path);
  order_.add_take(std::string("out/1/real\0x", 12));
  const auto report = happens();
  ASSERT_EQ(report.take_size(), 11);
  for (const auto& took : report.take()) {
    EXPECT_EQ(trouble(took.done()), FileTrouble::Refused) << took.done().text();
    EXPECT_EQ(took.data(), "");
  }
  EXPECT_THAT(report.take(0).done().text(), HasSubstr("it is a link"));
  EXPECT_THAT(report.take(1).done().text(), HasSubstr("it is a link"));
  fs::remove(outside);
}

TEST_F(FilesTest, OnlyWhatIsBelowFilesAndOutIsRemovedAndNothingBehindLinks) {
  const std::string key = wire::store_key(hash('a'), "x");
  const std::string twin = wire::store_key(hash('b'), "x");
  put(key, "1");
  put(twin, "1");
  put(wire::store_key(hash('b'), "y"), "1");
  happens();
  write("logs/log", "log");
  write("out/1/deep/er/file", "x");
  write("out/2/file", "x");
  fs::create_symlink(at("logs"), at("out/2/logs"));
  fs::create_symlink(at("logs"), at("out/away"));
  for (const std::string& path :
       {wire::place_of_key(key), wire::place_of_key(twin), std::string("out/1"),
        std::string("out/2"), std::string("out/gone/file"), std::string("out/away/log"),
        std::string("logs/log"), std::string("out"), std::string("out/../logs"),
        std::string("files/./incoming")})
    order_.add_drop(path);
  const auto report = happens();
  ASSERT_EQ(report.drop_size(), 10);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(trouble(report.drop(i)), i < 5 ? FileTrouble::None : FileTrouble::Refused)
        << i << report.drop(i).text();
  EXPECT_FALSE(fs::exists(at("files/aa/" + hash('a'))));
  EXPECT_TRUE(fs::exists(at("files/bb/" + hash('b') + "/y")));
  EXPECT_FALSE(fs::exists(at("out/1")));
  EXPECT_FALSE(fs::exists(at("out/2")));
  EXPECT_TRUE(fs::is_symlink(at("out/away")));
  EXPECT_EQ(text_of("logs/log"), "log");
  order_.add_drop("out/away");
  happens();
  EXPECT_FALSE(fs::exists(fs::symlink_status(at("out/away"))));
  EXPECT_EQ(text_of("logs/log"), "log");
}

TEST_F(FilesTest, AStoreBehindALinkIsRefusedAndTheRestGoesOn) {
  write("elsewhere/file", "x");
  fs::create_symlink(at("elsewhere"), at("files"));
  write("out/1", "one");
  put(wire::store_key(hash('a'), "x"), "1");
  order_.add_take("out/1");
  const auto report = happens();
  EXPECT_EQ(trouble(report.put(0)), FileTrouble::Refused);
  EXPECT_EQ(report.take(0).data(), "one");
  EXPECT_EQ(std::distance(fs::directory_iterator(at("elsewhere")), {}), 1);
}

TEST_F(FilesTest, AWorkspaceThatIsNotThereIsAnErrorOfTheWhole) {
  const auto report = exchange_files(at("none"), order_);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text, HasSubstr(at("none")));
}

TEST_F(FilesTest, TwoExchangesAreNotAtWorkAtOnce) {
  happens();
  const Fd other(::open(at("files/lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  order_.set_limit_ms(1);
  const auto report = exchange_files(directory_, order_);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().text, HasSubstr("still at work"));
}

TEST_F(FilesTest, AFullDiskIsToldWithWhatWasWantedAndIsFree) {
  const std::string small = at("small");
  fs::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  put(wire::store_key(hash('a'), "fits"), std::string(1000, 'x'));
  put(wire::store_key(hash('b'), "does not"), std::string(1 << 20, 'x'));
  put(wire::store_key(hash('c'), "fits"), std::string(1000, 'x'));
  const auto report = exchange_files(small, order_);
  ::umount2(small.c_str(), MNT_DETACH);
  ASSERT_TRUE(report);
  EXPECT_EQ(trouble(report->put(0)), FileTrouble::None);
  EXPECT_EQ(trouble(report->put(1)), FileTrouble::DiskFull);
  EXPECT_THAT(report->put(1).text(), HasSubstr("1048576 bytes wanted"));
  EXPECT_THAT(report->put(1).text(), HasSubstr("free there"));
  EXPECT_EQ(trouble(report->put(2)), FileTrouble::None) << report->put(2).text();
  EXPECT_LT(report->free_bytes(), 256u << 10);
}

/// What the program says when it is told so much and no more.
std::vector<wire::FilesReport> said_to(const std::string& workspace, const std::string& frames) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Fd here(ends[0]);
  Fd there(ends[1]);
  EXPECT_EQ(write_all(here.get(), frames), 0);
  ::shutdown(here.get(), SHUT_WR);
  EXPECT_EQ(serve_files(workspace, there.get(), there.get()), 0);
  there.reset();
  std::vector<wire::FilesReport> reports;
  wire::FileFrames in;
  for (ssize_t got = 1; got > 0;) {
    got = ::read(here.get(), in.room(4096), 4096);
    in.add(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    for (auto frame = in.next(); frame && *frame; frame = in.next())
      reports.emplace_back().ParseFromString(std::string((*frame)->bytes));
  }
  return reports;
}

std::string received(const std::string& mark, std::uint64_t offset, const std::string& data) {
  wire::FilesOrder order;
  order.mutable_receive()->set_mark(mark);
  order.mutable_receive()->set_offset(offset);
  std::string frames;
  wire::append_file_frame(frames, wire::FileFrame::Kind::Order, order.SerializeAsString());
  wire::append_file_frame(frames, wire::FileFrame::Kind::Data, data);
  return frames;
}

TEST_F(FilesTest, WhatIsReceivedGoesOnWhereItWas) {
  const std::string mark = wire::store_key(hash('a'), "big");
  const std::string place = wire::incoming_of_key(mark);
  EXPECT_TRUE(said_to(directory_, received(mark, 0, "begin and more")).empty());
  EXPECT_TRUE(said_to(directory_, received(mark, 5, "ning")).empty());
  EXPECT_EQ(text_of(place), "beginning");
  EXPECT_EQ(mode_of(place), 0600u);
}

TEST_F(FilesTest, WhatIsReceivedNeverHasHoles) {
  const std::string mark = wire::store_key(hash('a'), "big");
  const std::string place = wire::incoming_of_key(mark);
  write(place, "12345");
  auto said = said_to(directory_, received(mark, 6, "7"));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(trouble(said[0].moved()), FileTrouble::Other);
  EXPECT_EQ(text_of(place), "12345");
  // One that was cut off, and reads on what was sent to it.
  const Fd other(::open(at(place).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  said = said_to(directory_, received(mark, 0, "anew"));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(trouble(said[0].moved()), FileTrouble::Other);
  EXPECT_THAT(said[0].moved().text(), HasSubstr("an earlier stream"));
  EXPECT_EQ(text_of(place), "12345");
}

}  // namespace
}  // namespace hpcbatch::pilot
