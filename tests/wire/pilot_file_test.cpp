// The file that tells a pilot who it is: round trip, what is refused, and who may read it.
#include "wire/pilot_file.hpp"
#include "wire/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hpcbatch::wire {
namespace {

using namespace std::chrono_literals;

PilotFile example_file() {
  return {.allocation = "Hb1a2b3c",
          .site = "cluster",
          .key = random_key(),
          .addresses = {{Address::Kind::Unix, "/run/a b/link", 0},
                        {Address::Kind::Tcp, "fe80::1", 4000}},
          .workspace = "/scratch/me/hpc batch",
          .capacity = {{"cpus", 40000}, {"memory", 80000}, {"gpus/a100", 20000}},
          .walltime = 3600s,
          .margin = 30s,
          .idle = 60s,
          .scratch = "/local",
          .history = "/scratch/me/seen"};
}

std::string minimal(const std::string& more = "") {
  return "hpcbatch-pilot 1\nallocation Hb1\nkey " + std::string(64, 'a') +
         "\naddress unix /run/x\nworkspace /w\n" + more;
}

TEST(PilotFile, ComesBackAsItWas) {
  const auto back = parse_pilot_file(to_text(example_file()), "f");
  ASSERT_TRUE(back) << back.error().text;
  PilotFile expected = example_file();
  expected.key = back->key;
  EXPECT_EQ(*back, expected);
}

TEST(PilotFile, WhatIsLeftOutHasADefault) {
  const auto file = parse_pilot_file(minimal(), "f");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->scratch, "/tmp");
  EXPECT_EQ(file->walltime, 0ms);
  EXPECT_EQ(file->site, "");
}

TEST(PilotFile, MistakesAreNamedWithTheirLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"hpcbatch-pilot 2\n", "f, line 1: expected 'hpcbatch-pilot 1'"},
      {"", "cut off"},
      {"hpcbatch-pilot 1", "cut off"},
      {"hpcbatch-pilot 1\n", "there is no line 'allocation'"},
      {minimal("colour red\n"), "f, line 6: unknown key 'colour'"},
      {minimal("\n"), "f, line 6: unknown key ''"},
      {minimal("workspace /x\n"), "f, line 6: 'workspace' stands there twice"},
      {minimal("walltime_ms soon\n"), "f, line 6: expected a number of milliseconds"},
      {minimal("walltime_ms -1\n"), "f, line 6: expected a number of milliseconds"},
      {minimal("capacity cpus\n"), "f, line 6: expected a name and an amount"},
      {minimal("capacity cpus 1\ncapacity cpus 2\n"), "f, line 7: 'cpus' stands there twice"},
      {minimal("address tcp host\n"), "f, line 6: expected 'unix /path', 'tcp"},
      {minimal("address tcp 1.2.3.4 70000\n"), "f, line 6: expected 'unix /path', 'tcp"},
      {minimal("scratch tmp\n"), "f, line 6: expected an absolute path"},
      {"hpcbatch-pilot 1\nallocation a/b\n", "f, line 2: expected a name of up to 15"},
      {"hpcbatch-pilot 1\nallocation Hb1\nkey 12\n", "f, line 3: expected a key of 64"},
  };
  for (const auto& [text, expected] : cases) {
    const auto file = parse_pilot_file(text, "f");
    ASSERT_FALSE(file) << text;
    EXPECT_THAT(file.error().text, testing::HasSubstr(expected));
  }
}

TEST(PilotFile, IsRefusedWhereOthersMayReadIt) {
  char place[] = "/tmp/hpcbatch-pilotfile-XXXXXX";
  ASSERT_NE(::mkdtemp(place), nullptr);
  const std::string path = std::string(place) + "/file";
  const auto absent = read_pilot_file(path);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, Error::Kind::Transient);
  ASSERT_TRUE(replace_file(path, to_text(example_file()), Readers::OwnerOnly));
  EXPECT_TRUE(read_pilot_file(path));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto loose = read_pilot_file(path);
  ASSERT_FALSE(loose);
  EXPECT_EQ(loose.error().kind, Error::Kind::Rejected);
  EXPECT_THAT(loose.error().text, testing::HasSubstr("can be opened by others"));
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    const auto foreign = read_pilot_file(path);
    ASSERT_FALSE(foreign);
    EXPECT_THAT(foreign.error().text, testing::HasSubstr("belongs to user 12345"));
  }
  EXPECT_FALSE(read_pilot_file(place)) << "a directory";
  std::filesystem::remove_all(place);
}

}  // namespace
}  // namespace hpcbatch::wire
