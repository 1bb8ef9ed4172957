// The verbs that show tasks and things, against a fake engine.
#include "verb_test.hpp"

namespace hpcbatch::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class LookTest : public VerbTest {};

TEST_F(LookTest, ListShowsALineForEachSubmission) {
  engine_answers({{"GET /v1/arrays?limit=20&per=submit",
                   R"({"arrays": [
    {"id": "14", "state": "running", "client": "shell:me", "total": 1000, "name": "sweep", "submitted_at": 1000,
     "started_at": 1060, "ended_at": 1120, "command": ["fit", "{}"],
     "counts": {"waiting": 400, "held": 0, "running": 97, "done": 500, "failed": 3, "cancelled": 0}},
    {"id": "13", "state": "done", "client": "shell:me", "total": 1, "submitted_at": 1000, "tool": "ina",
     "counts": {"waiting": 0, "held": 0, "running": 0, "done": 1, "failed": 0, "cancelled": 0}}]})"}});
  const std::string out = cli({"list"}).out;
  EXPECT_THAT(out, testing::StartsWith("ID  STATE    PROGRESS          DONE  FAILED"));
  EXPECT_THAT(out, HasSubstr("14  running  [####x>....]  500/1000       3"));
  EXPECT_THAT(out, HasSubstr("   1m  sweep: fit {}\n"));
  EXPECT_THAT(out, HasSubstr("13  done"));
  EXPECT_THAT(out, HasSubstr("  ina\n"));
  EXPECT_THAT(out, Not(HasSubstr("WHO"))) << "they are all one's";
}

TEST_F(LookTest, AFileOfTasksIsALine) {
  engine_answers({{"GET /v1/arrays?limit=20&per=submit",
                   R"({"arrays": [
    {"id": "12-14", "submit": "12-14", "state": "failed", "client": "shell:me", "total": 3, "name": "prepare, fit",
     "submitted_at": 1000, "counts": {"waiting": 0, "done": 2, "failed": 1}}]})"}});
  EXPECT_THAT(cli({"list"}).out, HasSubstr("12-14  failed  [#######xxx]   2/3       1"));
}

TEST_F(LookTest, ListChoosesSubmissions) {
  engine_answers(
      {{"GET /v1/arrays?limit=5&per=submit&state=failed&failure=oom_task&name=sweep%2A&tool=ina&"
        "site=quartz&client=galaxy",
        R"({"arrays": []})"}});
  const CliResult result =
      cli({"list", "-n", "5", "--state", "failed", "--failure", "oom_task", "--name", "sweep*",
           "--tool", "ina", "--site", "quartz", "--client", "galaxy"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(LookTest, ListGoesOnWhereTheEngineHasLookedAtMany) {
  engine_answers(
      {{"GET /v1/arrays?limit=20&per=submit&state=failed", R"({"arrays": [], "next": "5000"})"},
       {"GET /v1/arrays?limit=20&per=submit&state=failed&before=5000",
        R"({"arrays": [{"id": "7", "state": "failed", "client": "a", "total": 1,
                       "submitted_at": 1, "counts": {"failed": 1}}]})"}});
  EXPECT_THAT(cli({"list", "--state", "failed"}).out, HasSubstr("7   failed"));
}

TEST_F(LookTest, LastIsTheNewestOfThisUser) {
  engine_answers({{"GET /v1/arrays?limit=1&client=" + me(), R"({"arrays": [{"id": "14"}]})"},
                  {"GET /v1/tasks/14.3", R"({"id": "14.3", "state": "done"})"},
                  {"GET /v1/tasks?limit=1000&array=14", R"({"tasks": []})"},
                  {"POST /v1/tasks/cancel", R"({"tasks": 2})"}});
  EXPECT_EQ(cli({"show", "last.3"}).out, "id     14.3\nstate  done\n");
  EXPECT_EQ(cli({"list", "last"}).exit_code, 0);
  EXPECT_EQ(cli({"cancel", "last"}).out, "2 tasks cancelled\n");
  engine_answers({{"POST /v1/tasks/cancel", R"({"tasks": 9, "at_pilots": 2})"}});
  EXPECT_EQ(cli({"cancel", "12"}).out, "7 tasks cancelled, and 2 at pilots are told to end\n");
  engine_answers({{"POST /v1/tasks/cancel", R"({"tasks": 1, "at_pilots": 1})"}});
  EXPECT_EQ(cli({"cancel", "12"}).out, "1 task at a pilot is told to end\n");
  engine_answers({{"POST /v1/tasks/hold", R"({"tasks": 6, "at_pilots": 4})"}});
  EXPECT_EQ(
      cli({"hold", "12"}).out,
      "6 tasks held; 4 are at pilots: those that run go on, those that wait there are held\n");
  engine_answers({{"POST /v1/tasks/hold", R"({"tasks": 0, "at_pilots": 1})"}});
  EXPECT_EQ(
      cli({"hold", "12"}).out,
      "none held yet; 1 is at a pilot: it goes on if it runs, and is held if it waits there\n");
  engine_answers({{"GET /v1/arrays?limit=1&client=" + me(), R"({"arrays": []})"}});
  const CliResult none = cli({"show", "last"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("you have submitted nothing"));
}

TEST_F(LookTest, LastIsAllOfTheFileThatWasSubmittedLast) {
  engine_answers({{"GET /v1/arrays?limit=1&client=" + me(),
                   R"({"arrays": [{"id": "14", "submit": "12-14"}]})"},
                  {"POST /v1/tasks/cancel", R"({"tasks": 3})"},
                  {"GET /v1/tasks/14.3", R"({"id": "14.3", "state": "done"})"}});
  EXPECT_EQ(cli({"cancel", "last"}).exit_code, 0);
  EXPECT_EQ(body_of("POST", "/v1/tasks/cancel"),
            boost::json::parse(R"({"ids": ["12", "13", "14"]})"));
  EXPECT_EQ(cli({"show", "last.3"}).out, "id     14.3\nstate  done\n");
}

TEST_F(LookTest, SeveralAreExplainedTogether) {
  engine_answers(
      {{"GET /v1/tasks/12/explain", R"({"id": "12", "state": "done", "text": "ended well"})"},
       {"GET /v1/tasks/13/explain",
        R"({"id": "13", "state": "waiting", "text": "no room", "counts": {"waiting": 7, "done": 2}})"},
       {"GET /v1/tasks/14/explain", R"({"id": "14", "state": "failed", "text": "exit code 1"})"}});
  EXPECT_EQ(cli({"explain", "12-14"}).out,
            "of 3 submissions with 11 tasks: 3 done, 1 failed, 7 waiting\n"
            "14 is failed: exit code 1\n"
            "13 is waiting: no room\n");
}

TEST_F(LookTest, SeveralAreShownOneAfterTheOther) {
  engine_answers(
      {{"GET /v1/tasks/12", R"({"id": "12"})"}, {"GET /v1/tasks/13", R"({"id": "13"})"}});
  EXPECT_EQ(cli({"show", "12", "13"}).out, "id  12\n\nid  13\n");
  EXPECT_EQ(cli({"show", "--json", "12-13"}).out, "{\"id\":\"12\"}\n{\"id\":\"13\"}\n");
}

TEST_F(LookTest, OnlyOneIsFollowed) {
  engine_answers({});
  const CliResult result = cli({"log", "-f", "12", "13", "15"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("`hpcbatch wait 12-13 15`"));
}

TEST_F(LookTest, ANameMeansAllThatHaveIt) {
  const std::string mine = me();
  engine_answers({{"GET /v1/arrays?limit=1000&client=" + mine + "&name=sweep",
                   R"({"arrays": [{"id": "14"}, {"id": "9"}]})"},
                  {"GET /v1/arrays?limit=1000&client=" + mine + "&name=swep", R"({"arrays": []})"},
                  {"POST /v1/tasks/cancel", R"({"tasks": 2})"}});
  EXPECT_EQ(cli({"cancel", "--name", "sweep"}).out, "2 tasks cancelled\n");
  EXPECT_EQ(body_of("POST", "/v1/tasks/cancel"), boost::json::parse(R"({"ids": ["14", "9"]})"));
  const CliResult none = cli({"cancel", "--name", "swep"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("is called 'swep'"));
}

TEST_F(LookTest, ListShowsTasksInColumns) {
  engine_answers({{"GET /v1/tasks?limit=1000&state=failed",
                   R"({"tasks": [{"id": "13", "state": "waiting", "tasks": 100, "name": "many"},
                                 {"id": "12.3", "state": "failed", "failure": "oom_task", "exit_code": 137, "tool": "ina", "tasks": 1}]})"}});
  EXPECT_EQ(cli({"list", "--tasks", "--state", "failed"}).out,
            "ID    STATE    TASKS  EXIT  FAILURE   NAME\n"
            "13    waiting    100                  many\n"
            "12.3  failed           137  oom_task  ina\n");
}

TEST_F(LookTest, ListReadsPageAfterPage) {
  std::string page = R"({"tasks": [)";
  for (int id = 200'000; id > 100'000; --id)
    page +=
        (id < 200'000 ? "," : "") + (R"({"id": ")" + std::to_string(id)) + R"(", "state": "done"})";
  engine_answers({{"GET /v1/tasks?limit=100000&apart=1", page + "]}"},
                  {"GET /v1/tasks?limit=100000&apart=1&before=100001",
                   R"({"tasks": [{"id": "7", "state": "done"}]})"}});
  const CliResult result = cli({"list", "--tasks", "--all", "--json"});
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 100'001);
  EXPECT_TRUE(result.out.ends_with("{\"id\":\"7\",\"state\":\"done\"}\n"));
}

TEST_F(LookTest, NamesCannotHarmATerminal) {
  engine_answers({{"GET /v1/tasks?limit=1000",
                   R"({"tasks": [{"id": "1", "state": "done", "name": "\u001b[2J"}]})"}});
  EXPECT_THAT(cli({"list", "--tasks"}).out, HasSubstr("\\x1b[2J"));
}

TEST_F(LookTest, ShowFindsTasksAndArrays) {
  engine_answers({{"GET /v1/tasks/12.3", R"({"id": "12.3", "state": "done"})"},
                  {"GET /v1/arrays/12", R"({"id": "12", "tasks": {"done": 9, "waiting": 1}})"}});
  EXPECT_EQ(cli({"show", "12.3"}).out, "id     12.3\nstate  done\n");
  EXPECT_EQ(cli({"show", "12"}).out, "id     12\ntasks  done 9, waiting 1\n");
  EXPECT_EQ(cli({"show", "--json", "12.3"}).out, "{\"id\":\"12.3\",\"state\":\"done\"}\n");
  const CliResult unknown = cli({"show", "13"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.err, "hpcbatch: there is no such thing\n");
}

TEST_F(LookTest, ExplainIsASentenceAndItsDetails) {
  engine_answers(
      {{"GET /v1/tasks/12/explain",
        R"({"id": "12", "state": "waiting", "text": "no pilot has room", "details": ["quartz: 1 queued"]})"}});
  EXPECT_EQ(cli({"explain", "12"}).out, "12 is waiting: no pilot has room\n  quartz: 1 queued\n");
}

TEST_F(LookTest, ExplainQuotesWhatTheFirstThatFailedPrintedLast) {
  engine_answers({{"GET /v1/tasks/5/explain",
                   R"({"id": "5", "state": "failed", "text": "of 9 tasks 8 done, 1 failed",
            "failures": [{"failure": "tool_failed", "tasks": 1, "first": "5.7"}],
            "details": ["1 exit code 1: first 5.7 (item chr3.bam) on node4"]})"},
                  {"GET /v1/tasks/5.7/log?stream=stderr&tail=600",
                   R"({"text": "one\ntwo\nthree\nno such file\n"})"}});
  EXPECT_EQ(cli({"explain", "5"}).out,
            "5 is failed: of 9 tasks 8 done, 1 failed\n"
            "  1 exit code 1: first 5.7 (item chr3.bam) on node4\n"
            "  5.7 last printed:\n    two\n    three\n    no such file\n");
}

TEST_F(LookTest, LogPrintsEachStreamToItsOwn) {
  const std::string page(1 << 20, 'x');
  engine_answers({{"GET /v1/arrays/12", R"({"id": "12", "indices": "0"})"},
                  {"GET /v1/tasks/12/log?stream=stdout&limit=1048576&offset=0",
                   R"({"text": ")" + page + R"(", "offset": 0, "next": 1048576, "end": false})"},
                  {"GET /v1/tasks/12/log?stream=stdout&limit=1048576&offset=1048576",
                   R"({"base64": "aGkK", "offset": 1048576, "next": 1048579, "end": true})"},
                  {"GET /v1/tasks/12/log?stream=stderr&limit=1048576&offset=0",
                   R"({"text": "bad", "offset": 0, "next": 3, "end": true, "truncated": true})"}});
  const CliResult result = cli({"log", "12"});
  EXPECT_EQ(result.out, page + "hi\n");
  EXPECT_THAT(result.err, testing::StartsWith("bad"));
  EXPECT_THAT(result.err, HasSubstr("not all that task 12 wrote was kept"));
  EXPECT_EQ(cli({"log", "--stdout", "12"}).err, "");
}

TEST_F(LookTest, LogOfFailuresGoesToOnePipe) {
  engine_answers({{"GET /v1/arrays/12", R"({"id": "12", "indices": "1-3"})"},
                  {"GET /v1/tasks?limit=100000&array=12&printed=1&state=failed",
                   R"({"tasks": [{"id": "12.2"}]})"},
                  {"GET /v1/tasks/12.2/log?stream=stdout&limit=1048576&offset=0",
                   R"({"text": "out\n", "offset": 0, "next": 4, "end": true})"},
                  {"GET /v1/tasks/12.2/log?stream=stderr&limit=1048576&offset=0",
                   R"({"text": "reason\n", "offset": 0, "next": 7, "end": true})"}});
  const CliResult result = cli({"log", "--failed", "12"});
  EXPECT_EQ(result.out, "out\nreason\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(LookTest, LogSaysWhereAStreamIsThatItHasNot) {
  engine_answers(
      {{"GET /v1/arrays/12", R"({"id": "12", "indices": "0"})"},
       {"GET /v1/tasks/12/log?stream=stdout&limit=1048576&offset=0",
        R"({"text": "hi", "offset": 0, "next": 2, "end": true})"},
       {"GET /v1/tasks/12/log?stream=stderr&limit=1048576&offset=0",
        R"({"text": "", "offset": 0, "next": 0, "end": true, "file": "/w/logs.err"})"},
       {"GET /v1/arrays/13", R"({"id": "13", "indices": "1-3", "stdout": "/w/{index}.out"})"},
       {"GET /v1/tasks?limit=100000&array=13&printed=1", R"({"tasks": []})"}});
  const CliResult result = cli({"log", "12"});
  EXPECT_EQ(result.out, "hi");
  EXPECT_EQ(result.err, "hpcbatch: stderr of task 12 goes to /w/logs.err\n");
  EXPECT_THAT(cli({"log", "13"}).err,
              HasSubstr("stdout of the tasks of 13 goes to /w/{index}.out"));
}

TEST_F(LookTest, LogOfARunningTaskEndsWithAPageThatIsNotFull) {
  engine_answers({{"GET /v1/arrays/12", R"({"id": "12", "indices": "0"})"},
                  {"GET /v1/tasks/12/log?stream=stdout&limit=1048576&offset=0",
                   R"({"text": "so far", "offset": 0, "next": 6, "end": false})"}});
  EXPECT_EQ(cli({"log", "--stdout", "12"}).out, "so far");
}

TEST_F(LookTest, FollowGoesOnToTheEnd) {
  engine_does([](const FakeRequest& request, FakeConnection& connection) {
    if (request.target == "/v1/arrays/12") return connection.answer(200, R"({"indices": "0"})");
    connection.begin_chunks();
    connection.chunk(
        "{\"stream\": \"stdout\", \"text\": \"a\"}\n{\"stream\": \"stderr\", \"text\": \"b\"}\n");
    connection.chunk("{\"end\": {\"id\": \"12\"}}\n");
    connection.end_chunks();
  });
  const CliResult both = cli({"log", "-f", "12"});
  EXPECT_EQ(both.out + "|" + both.err, "a|b");
  EXPECT_THAT(cli({"log", "-f", "--stderr", "--json", "12"}).out, Not(HasSubstr("stdout")));
}

TEST_F(LookTest, SitesAreListedShownAndChecked) {
  engine_answers(
      {{"GET /v1/sites",
        R"({"sites": [{"name": "quartz", "state": "ok", "scheduler": "slurm", "queued": 1}]})"},
       {"GET /v1/sites/quartz",
        R"({"name": "quartz", "shapes": [{"name": "cpu", "walltime": 7200, "memory": 1073741824}]})"},
       {"POST /v1/sites/quartz/check",
        R"({"ok": false, "checks": [{"check": "sbatch", "ok": true, "text": "24.05"}, {"check": "workspace", "ok": false, "text": "not writable"}], "notes": ["partition old is left out"], "proposal": "- name: quartz\n  scheduler: slurm\n"})"}});
  EXPECT_EQ(cli({"sites"}).out,
            "SITE    STATE  SCHEDULER  QUEUED\nquartz  ok     slurm           1\n");
  EXPECT_EQ(cli({"sites", "show", "quartz"}).out,
            "name  quartz\nshapes:\n  name  walltime  memory\n  cpu   2h        1G\n");
  const CliResult check = cli({"sites", "check", "quartz"});
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_THAT(check.out, HasSubstr("BAD  workspace  not writable"));
  EXPECT_THAT(check.out, HasSubstr("\nnote: partition old is left out\n"));
  EXPECT_THAT(check.out, HasSubstr("\nproposed entry:\n- name: quartz\n  scheduler: slurm\n"));
}

TEST_F(LookTest, EveryListHasItsTable) {
  engine_answers(
      {{"GET /v1/allocations",
        R"({"allocations": [{"name": "hab12", "site": "quartz", "state": "running"}]})"},
       {"GET /v1/pilots",
        R"({"pilots": [{"name": "hab12.0", "node": "n1", "memory": 2147483648, "gpus": {"a100": 2}}]})"},
       {"GET /v1/tools", R"({"tools": []})"}});
  EXPECT_THAT(cli({"allocations"}).out, HasSubstr("hab12       quartz  running"));
  EXPECT_THAT(cli({"pilots"}).out, HasSubstr("2G  2 a100"));
  EXPECT_EQ(cli({"tools"}).out, "no tools\n");
  EXPECT_EQ(cli({"pilots", "--json"}).out.substr(0, 17), "{\"name\":\"hab12.0\"");
}

TEST_F(LookTest, TopShowsAllAndEndsWithQ) {
  const std::string arrays =
      R"({"arrays": [{"id": "12", "state": "running", "total": 4, "name": "sweep",
                        "counts": {"done": 1, "running": 1, "waiting": 2}}]})";
  engine_answers(
      {{"GET /v1/engine",
        R"({"state": "running", "version": "1", "uptime_s": 60, "tasks": {"running": 2}, "pilots": {"running": 1}})"},
       {"GET /v1/sites", R"({"sites": []})"},
       {"GET /v1/allocations", R"({"allocations": [{"name": "old", "state": "ended"}]})"},
       {"GET /v1/pilots", R"({"pilots": [{"name": "hab12.0"}]})"},
       {"GET /v1/arrays?per=submit&limit=50", arrays},
       {"GET /v1/arrays?limit=100&per=submit", arrays}});
  const CliResult once = cli({"top", "--once"});
  EXPECT_THAT(once.out, HasSubstr("tasks   running 2"));
  EXPECT_THAT(once.out, HasSubstr("1/4"));
  EXPECT_THAT(once.out, HasSubstr("sweep"));
  EXPECT_THAT(once.out, HasSubstr("hab12.0"));
  EXPECT_THAT(once.out, Not(HasSubstr("old")));
  EXPECT_EQ(once.out.find('\x1b'), std::string::npos);

  CliOptions options;
  options.is_terminal = true;
  CliProcess live(home(), {"top"}, options);
  live.wait_for_output("sweep");
  live.type("3");
  live.wait_for_output("hab12.0");
  live.type("q");
  const CliResult ended = live.wait();
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_TRUE(ended.out.ends_with("\x1b[?1049l"));

  CliProcess stopped(home(), {"top"}, options);
  stopped.wait_for_output("sweep");
  stopped.signal(SIGTERM);
  const CliResult told = stopped.wait();
  EXPECT_EQ(told.exit_code, 128 + SIGTERM);
  EXPECT_TRUE(told.out.ends_with("\x1b[?1049l"));
}

}  // namespace
}  // namespace hpcbatch::test
