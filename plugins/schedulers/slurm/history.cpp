#include "answer_lines.hpp"
#include "slurm.hpp"

#include <hpcbatch/batch_time.hpp>
#include <hpcbatch/text.hpp>

#include <sstream>
#include <string_view>

namespace hpcbatch::slurm {
namespace {

/// Moments go in as local time, the only form that all versions of sacct read, and come out as
/// seconds.  What a job asked for as GPUs is last (sacct(1), ReqTRES).
constexpr const char* kPast = R"sh(
if ! command -v sacct >/dev/null 2>&1; then echo hbnone; exit 0; fi
from=$(date -d "@$1" +%Y-%m-%dT%H:%M:%S) && until=$(date -d "@$2" +%Y-%m-%dT%H:%M:%S) || exit
{
  SLURM_TIME_FORMAT=%s timeout 50 sacct --allusers --allocations --duplicates --noheader --parsable2 \
    --starttime="$from" --endtime="$until" \
    --format=State,User,Partition,ReqCPUS,Timelimit,Submit,Eligible,Start,End,ReqTRES || echo "hbfailed $?"
} | head -n 10001
echo hbend
)sh";

/// One more is asked for, which tells that there are more.
constexpr std::size_t kMostListed = 10'000;
/// A limit that is none.
constexpr std::chrono::seconds kUnlimited = std::chrono::hours{24 * 365};

/// Of a count that is written out; nothing for other words.
std::optional<double> count_in(std::string_view text) {
  const auto value = number_in<double>(text);
  return value && *value >= 0 && *value < 1e12 ? value : std::nullopt;
}

/// Of "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,node=1": the sum without kinds, else that of them.
double gpus_in(const std::string& tres) {
  double all = 0, kinds = 0;
  for (const std::string& one : split(tres, ',')) {
    const auto equals = one.rfind('=');
    if (!one.starts_with("gres/gpu") || equals == std::string::npos) continue;
    const double count = count_in(std::string_view(one).substr(equals + 1)).value_or(0);
    (one.starts_with("gres/gpu=") ? all : kinds) += count;
  }
  return all > 0 ? all : kinds;
}

std::optional<PastJob> past_job_of(const std::vector<std::string>& parts) {
  const auto cpus = count_in(parts[3]);
  const auto submitted = read_moment(parts[5]);
  if (!cpus || !submitted) return std::nullopt;
  PastJob job{.partition = split(parts[2], ',').front(),
              .user = parts[1],
              .cpus = *cpus,
              .gpus = gpus_in(parts[9]),
              .limit = slurm_time(parts[4]).value_or(kUnlimited),
              .submitted = *submitted,
              .eligible = read_moment(parts[6]).value_or(*submitted),
              .started = read_moment(parts[7]),
              .ended = read_moment(parts[8])};
  // One that was cancelled while it waited "starts" when it ends.
  const bool never_began = parts[0].starts_with("CANCELLED") && job.started == job.ended;
  if (never_began || parts[0].starts_with("PENDING")) job.started.reset();
  return job;
}

}  // namespace

CommandLine Slurm::list_past(std::chrono::seconds from, std::chrono::seconds until) const {
  return {.argv = {"sh", "-c", kPast, "sh", std::to_string(from.count()),
                   std::to_string(until.count())},
          .environment = {},
          .input = {}};
}

Result<PastJobs> Slurm::read_past(const CommandOutput& output) const {
  const auto distrust = [](const std::string& why) {
    return Error{Error::Kind::Transient, "cannot list what accounting keeps: " + why};
  };
  if (output.timed_out) return distrust("sacct gave no answer in time");
  if (output.exit_code != 0) return distrust(one_line(output.standard_error));
  PastJobs found;
  bool whole = false;
  std::istringstream lines(output.standard_output);
  for (std::string line; std::getline(lines, line);) {
    if (line == "hbnone")
      return Error{Error::Kind::Rejected, "there is no accounting: sacct is not there"};
    if (line == "hbfailed 124") return distrust("sacct gave no answer within 50 s");
    if (line.starts_with("hbfailed")) {
      const std::string said = one_line(output.standard_error);
      if (said.find("accounting storage is disabled") != std::string::npos)
        return Error{Error::Kind::Rejected, "there is no accounting: " + said};
      return distrust(said);
    }
    whole = line == "hbend";
    const auto parts = split(line, '|');
    if (parts.size() != 10) continue;
    if (found.jobs.size() == kMostListed) {
      found.is_cut = true;
      continue;
    }
    if (auto job = past_job_of(parts)) found.jobs.push_back(std::move(*job));
  }
  if (!whole) return distrust("half an answer");
  return found;
}

}  // namespace hpcbatch::slurm
