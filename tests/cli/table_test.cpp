// What people are shown: tables, descriptions, values, and that no text can harm their terminal.
#include "cli/show/table.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::object object(const char* text) {
  return json::parse(text).as_object();
}

TEST(Values, MomentsAreShortInTables) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const json::object times = object(R"({"a": 1000000, "b": 1060000, "c": "x"})");
  EXPECT_EQ(moment_at(times, "a", 1000500), "13:46:40");
  EXPECT_EQ(moment_at(times, "b", 1000500), "01-13 06:26");
  EXPECT_EQ(moment_at(times, "c", 1000500), "");
}

TEST(Progress, SaysHowFastItGoesAndHowLongTheRestTakes) {
  using namespace std::chrono_literals;
  Progress progress;
  const Progress::Clock::time_point begin{};
  EXPECT_EQ(progress.line("page", 100, 1000, begin), "page 100 of 1000");
  EXPECT_EQ(progress.line("page", 300, 1000, begin + 4s),
            "page 300 of 1000, 50 a second, 14s left");
  EXPECT_EQ(progress.line("rows", 10, 0, begin + 5s), "10 rows");
  EXPECT_EQ(progress.line("rows", 11, 0, begin + 65s), "11 rows, 1 a minute");
  EXPECT_EQ(progress.line("looks at all pages together", 0, 0, begin + 70s),
            "looks at all pages together");
}

TEST(Table, ColumnsAlignAndEmptyOnesAreLeftOut) {
  Table table({{"ID"}, {"NEVER"}, {"N", Table::Side::Right}, {"NAME"}});
  table.add({"1", "", "100", "a"});
  table.add({"1234", "", "5", ""});
  EXPECT_EQ(table.text(),
            "ID      N  NAME\n"
            "1     100  a\n"
            "1234    5\n");
}

TEST(Table, AnEmptyFirstCellKeepsItsPlace) {
  Table table({{"A"}, {"B"}});
  table.add({"", "x"});
  table.add({"aa", "y"});
  EXPECT_EQ(table.text(), "A   B\n    x\naa  y\n");
}

TEST(Table, LettersAreCountedAndNotBytes) {
  Table table({{"A"}, {"B"}});
  table.add({"\xC3\xA4\xC3\xB6", "x"});
  table.add({"ao", "y"});
  EXPECT_EQ(table.text(), "A   B\n\xC3\xA4\xC3\xB6  x\nao  y\n");
}

TEST(Table, TheLastColumnIsCutWhereThereIsNoRoom) {
  Table table({{"ID"}, {"WHAT"}});
  table.add({"1", "a command that is long"});
  table.add({"22", "short"});
  EXPECT_EQ(table.text(16), "ID  WHAT\n1   a command...\n22  short\n");
  EXPECT_EQ(table.text(1), "ID  WHAT\n1   a com...\n22  short\n");
}

TEST(Table, OrTheLastColumnGoesOnBelow) {
  Table table({{"ID"}, {"WHAT"}});
  table.add({"1", "a sentence that is longer than a line has room for"});
  table.add({"22", "short"});
  EXPECT_EQ(table.width(), 54U);
  EXPECT_EQ(table.text(32, Table::Last::Wrapped),
            "ID  WHAT\n"
            "1   a sentence that is longer\n"
            "    than a line has room for\n"
            "22  short\n");
  EXPECT_EQ(table.text(54, Table::Last::Wrapped), table.text());
}

TEST(Table, ALastColumnThatIsLeftNoRoomHasLinesOfItsOwn) {
  Table table({{"NAME"}, {"WHAT"}});
  table.add({"a name that is long", "words that are many and more"});
  table.add({"b", "few"});
  EXPECT_EQ(table.text(30, Table::Last::Wrapped),
            "NAME                 WHAT\n"
            "a name that is long\n"
            "    words that are many and\n"
            "    more\n"
            "b                    few\n");
}

TEST(ProgressBar, EveryPartThatThereIsIsSeen) {
  EXPECT_EQ(
      progress_bar(object(R"({"done": 1000000, "failed": 1, "running": 1, "waiting": 1})"), 10),
      "#######x>.");
  EXPECT_EQ(progress_bar(object(R"({"done": 10})"), 10), "##########");
  EXPECT_EQ(progress_bar(object(R"({"waiting": 2, "held": 1, "done": 1})"), 8), "##......");
  EXPECT_EQ(progress_bar(object(R"({})"), 4), "....");
}

TEST(Table, ControlBytesAreShownAndNotSent) {
  EXPECT_EQ(one_line("a\x1b[2Jb\nc\td\xff"), "a\\x1b[2Jb\\nc\\x09d\\xff");
  EXPECT_EQ(one_line("\xC2\x9b"
                     "2J\xC2\xA0"),
            "\\u009b2J\xC2\xA0");
  Table table({{"A"}});
  table.add({"\x1b]0;x\x07"});
  EXPECT_EQ(table.text().find('\x1b'), std::string::npos);
}

TEST(Values, AreReadAsPeopleReadThem) {
  const json::object all =
      object(R"({"text": "a", "number": 3, "fraction": 0.5, "big": 10000000000.0, "yes": true,
      "list": ["a", 2], "size": 4294967296, "time": 5400, "command": ["sh", "-c", "echo 'a'", ""],
      "gpus": {"a100": 2}})");
  EXPECT_EQ(text_at(all, "text"), "a");
  EXPECT_EQ(text_at(all, "number"), "3");
  EXPECT_EQ(text_at(all, "fraction"), "0.5");
  EXPECT_EQ(text_at(all, "big"), "10000000000");
  EXPECT_EQ(text_at(all, "yes"), "yes");
  EXPECT_EQ(text_at(all, "list"), "a, 2");
  EXPECT_EQ(text_at(all, "absent"), "");
  EXPECT_EQ(size_at(all, "size"), "4G");
  EXPECT_EQ(duration_at(all, "time"), "1h30m");
  EXPECT_EQ(gpus_at(all, "gpus"), "2 a100");
  EXPECT_EQ(command_at(all, "command"), "sh -c 'echo '\\''a'\\''' ''");
}

TEST(Describe, EachKeyInTheFormThatItsNameCallsFor) {
  EXPECT_EQ(
      describe(object(
          R"({"id": "12", "exit_code": 137, "needs": {"cpus": 1, "memory": 4294967296, "time": 3600},
      "peak_memory": 1048576, "run_s": 90, "command": ["echo", "a b"],
      "attempts": [{"attempt": 1, "failure": "node_lost"}, {"attempt": 2, "node": "n1"}]})")),
      "id           12\n"
      "exit code    137\n"
      "needs        cpus 1, memory 4G, time 1h\n"
      "peak memory  1M\n"
      "run time     1m30s\n"
      "command      echo 'a b'\n"
      "attempts:\n"
      "  attempt  failure    node\n"
      "  1        node_lost\n"
      "  2                   n1\n");
}

TEST(Describe, WhatIsWiderThanTheTerminalBreaksAtWords) {
  EXPECT_EQ(describe(object(R"({"id": "12", "command": ["echo", "words that are many", "and more"],
      "message": "it ended badly, and says why at length",
      "attempts": [{"attempt": 1, "failure": "node_lost", "node": "node17", "message": "gone"}]})"),
                     36),
            "id       12\n"
            "command  echo 'words that are many' 'and more'\n"
            "message  it ended badly, and says\n"
            "         why at length\n"
            "attempts:\n"
            "  attempt 1, failure node_lost, node\n"
            "    node17, message gone\n");
}

TEST(Base64, BytesComeBack) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("aGkK"), "hi\n");
  EXPECT_EQ(decode_base64("aA=="), "h");
  EXPECT_EQ(decode_base64("/wA="), std::string("\xff\0", 2));
  for (const char* bad : {"a", "aGk", "a?==", "====", "aA==aA=="})
    EXPECT_FALSE(decode_base64(bad)) << bad;
}

TEST(Table, OfALongPathTheEndIsKept) {
  Table table({{"ITEM"}});
  table.add({"/data/a/very/long/folder/session_0042.bam"});
  EXPECT_EQ(table.text(20), "ITEM\n/data...ion_0042.bam\n");
  Table words({{"COMMAND"}});
  words.add({"sh -c 'cat /data/a/very/long/folder'"});
  EXPECT_EQ(words.text(20), "COMMAND\nsh -c 'cat /data/...\n");
}

TEST(TaskLines, NeighboursThatEndedAlikeAreOneLine) {
  TaskLines lines;
  const auto add = [&](const char* text) { lines.add(boost::json::parse(text).as_object()); };
  add(R"({"id": "5.21-30", "state": "done", "tasks": 10, "exit_code": 0})");
  add(R"({"id": "5.11-20", "state": "done", "tasks": 10, "exit_code": 0})");
  add(R"({"id": "5.10", "state": "failed", "tasks": 1, "exit_code": 3})");
  add(R"({"id": "5.9", "state": "done", "tasks": 1, "exit_code": 0})");
  add(R"({"id": "5.7", "state": "done", "tasks": 1, "exit_code": 0})");
  add(R"({"id": "5.6", "state": "done", "tasks": 1, "exit_code": 0, "item": "a"})");
  add(R"({"id": "4.5", "state": "done", "tasks": 1, "exit_code": 0})");
  lines.finish();
  EXPECT_EQ(lines.table().text(),
            "ID       STATE   TASKS  EXIT  ITEM\n"
            "5.11-30  done       20     0\n"
            "5.10     failed            3\n"
            "5.9      done              0\n"
            "5.7      done              0\n"
            "5.6      done              0  a\n"
            "4.5      done              0\n");
}

TEST(SubmissionTable, OfAnEncodedArgumentTheBeginningIsShown) {
  const std::string encoded(200, 'Q');
  const std::string path = "/a" + std::string(200, 'b') + "/end";
  json::object one = object(R"({"id": "1", "state": "done", "total": 1, "name": "pow"})");
  one["command"] = json::array{"python3", path, encoded, "results"};
  const std::string text = submission_table({one}, 0).text();
  EXPECT_NE(text.find("pow: python3 " + path + " " + std::string(20, 'Q') + "... results"),
            std::string::npos)
      << text;
}

TEST(SubmissionTable, AScriptIsToldByItsNameAndItsArguments) {
  json::object one = object(R"({"id": "1", "state": "done", "total": 1, "name": "my.sh"})");
  one["command"] = json::array{"/bin/sh", "-c", "exec \"$@\"", "sh", "/work/my.sh", "a b", "c"};
  EXPECT_TRUE(submission_table({one}, 0).text().ends_with("  my.sh 'a b' c\n"));
  one["command"] = json::array{"/bin/sh", "/work/not_my.sh"};
  EXPECT_TRUE(submission_table({one}, 0).text().ends_with("  my.sh: /bin/sh /work/not_my.sh\n"));
  one["command"] = json::array{"my.sh"};
  EXPECT_TRUE(submission_table({one}, 0).text().ends_with("  my.sh\n"));
}

}  // namespace
}  // namespace hpcbatch
