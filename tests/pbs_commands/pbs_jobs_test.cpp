// Jobs as PBS tells them, and how qstat lays them out (recorded from OpenPBS 23.06).
#include "pbs_commands/listing.hpp"
#include "pbs_commands/pbs_job.hpp"

#include <gmock/gmock.h>
#include <boost/json/parse.hpp>

namespace hpcbatch::pbs_commands {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<PbsJob> jobs_in(const std::string& text, bool with_subjobs = false) {
  return pbs_jobs_of(slurm_commands::jobs_of(boost::json::parse(text).as_array(), true),
                     with_subjobs);
}

PbsJob job_in(const std::string& keys) {
  return jobs_in(R"([{"id": "12", )" + keys + "}]").at(0);
}

std::vector<std::string> ids_of(const std::vector<PbsJob>& jobs) {
  std::vector<std::string> ids;
  ids.reserve(jobs.size());
  for (const PbsJob& job : jobs) ids.push_back(id_of(job) + " " + state_of(job));
  return ids;
}

constexpr const char* kArray = R"([
  {"id": "12.8-10", "state": "waiting", "waits_for": "room", "indices": "1-10", "numbered": true, "from_zero": true},
  {"id": "12.2", "state": "running", "indices": "1-10", "numbered": true, "from_zero": true, "started_at": 5},
  {"id": "12.1", "state": "failed", "failure": "tool_failed", "exit_code": 3, "indices": "1-10", "numbered": true,
   "from_zero": true, "started_at": 4, "ended_at": 6},
  {"id": "11", "state": "held"}])";

TEST(PbsJobs, AnArrayIsOneJobAndItsTasksFollow) {
  EXPECT_THAT(ids_of(jobs_in(kArray)),
              ElementsAre("2000000011.hpcbatch H", "2000000012[].hpcbatch B"));
  EXPECT_THAT(
      ids_of(jobs_in(kArray, true)),
      ElementsAre("2000000011.hpcbatch H", "2000000012[].hpcbatch B", "2000000012[0].hpcbatch X",
                  "2000000012[1].hpcbatch R", "2000000012[7].hpcbatch Q",
                  "2000000012[8].hpcbatch Q", "2000000012[9].hpcbatch Q"));
  const PbsJob array = jobs_in(kArray).at(1);
  EXPECT_EQ(array.ended, 6U) << "those that are not in the list ended long ago";
  EXPECT_EQ(array.remaining, "7-9");
  EXPECT_EQ(submitted_indices(array.job), "0-9");
  EXPECT_FALSE(exit_status_of(array));
}

TEST(PbsJobs, ExitStatusesAreMoms) {
  EXPECT_EQ(exit_status_of(job_in(R"("state": "done")")), 0);
  EXPECT_EQ(
      exit_status_of(job_in(R"("state": "failed", "failure": "tool_failed", "exit_code": 7)")), 7);
  EXPECT_EQ(exit_status_of(job_in(R"("state": "failed", "failure": "tool_signal", "signal": 9)")),
            265);
  EXPECT_EQ(exit_status_of(job_in(R"("state": "failed", "failure": "time_task")")), -29);
  EXPECT_EQ(exit_status_of(job_in(R"("state": "failed", "failure": "oom_task")")), -27);
  EXPECT_EQ(exit_status_of(job_in(R"("state": "cancelled", "started_at": 5)")), 271);
  EXPECT_FALSE(exit_status_of(job_in(R"("state": "cancelled")"))) << "it never began";
  EXPECT_FALSE(exit_status_of(job_in(R"("state": "running", "started_at": 5)")));
}

TEST(PbsJobs, NamesMeanJobsArraysAndTheirTasks) {
  const std::vector<PbsJob> jobs = jobs_in(kArray, true);
  const auto named = [&](const char* text) {
    std::vector<std::string> ids;
    const auto name = parse_pbs_name(text);
    for (const PbsJob& job : jobs)
      if (name && is_named(job, *name) && !(job.is_subjob() && !name->job.indices))
        ids.push_back(id_of(job));
    return ids;
  };
  EXPECT_THAT(named("2000000011"), ElementsAre("2000000011.hpcbatch"));
  EXPECT_THAT(named("2000000012[].hpcbatch@there"), ElementsAre("2000000012[].hpcbatch"));
  EXPECT_THAT(named("2000000012[7-8].hpcbatch"),
              ElementsAre("2000000012[7].hpcbatch", "2000000012[8].hpcbatch"));
  EXPECT_FALSE(parse_pbs_name("workq"));
  EXPECT_FALSE(parse_pbs_name("12[x]"));
  EXPECT_EQ(parse_pbs_name("4711")->text, "4711.hpcbatch");
  EXPECT_EQ(parse_pbs_name("4711.pbs")->text, "4711.pbs");
}

TEST(PbsJobs, AttributesAreLaidOutAsRecorded) {
  Viewed viewed;
  viewed.user = "alice";
  const PbsJob job = job_in(
      R"("state": "done", "name": "fit", "node": "vm", "started_at": 5, "ended_at": 13, "submitted_at": 4, "attempt": 1,
         "needs": {"cpus": 2, "memory": 104857600, "time": 300})");
  const auto attributes = attributes_of(job, viewed, "login");
  const std::string text = attributes_as_text(id_of(job), attributes, false);
  EXPECT_THAT(
      text,
      StartsWith("Job Id: 2000000012.hpcbatch\n    Job_Name = fit\n    Job_Owner = alice@login\n"));
  EXPECT_THAT(text, HasSubstr("    Resource_List.walltime = 00:05:00\n"));
  EXPECT_THAT(text, HasSubstr("    resources_used.walltime = 00:00:08\n"));
  EXPECT_THAT(text, HasSubstr("    Exit_status = 0\n"));
  EXPECT_THAT(text, HasSubstr("on (vm:ncpus=2:mem=102400kb) and f\n\tinished\n"));
  EXPECT_THAT(attributes_as_text("12", attributes, true), Not(HasSubstr("\n\t")));
  EXPECT_THAT(attributes_as_dsv("12", attributes, "|"), StartsWith("Job Id: 12|Job_Name=fit|"));
  EXPECT_EQ(json_as_text({{"a", 1}, {"b", {{"c", "d"}}}}),
            "{\n\t\"a\":\t1,\n\t\"b\":\t{\n\t\t\"c\":\t\"d\"\n\t}\n}\n");
  EXPECT_THAT(
      short_table({job}, viewed),
      HasSubstr("\n2000000012.hpcbatch fit              alice             00:00:00 F hpcbatch"));
  EXPECT_EQ(short_table({}, viewed), "");
}

}  // namespace
}  // namespace hpcbatch::pbs_commands
