#include "queue.hpp"

#include "listing.hpp"
#include "states.hpp"
#include "submission.hpp"
#include "words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

namespace hpcbatch::slurm {
namespace {

/// What waits is listed by falling priority, arrays task by task, and no more of it than can matter
/// for what starts within days.  The name is last: it may contain anything (squeue(1)).
constexpr const char* kQueue = R"sh(
nodes=$(sinfo --all --noheader --exact '--format=hbpart|%P|%C|%N') || exit
export SLURM_TIME_FORMAT=%s
now=$(date +%s)
runs=$(squeue --all --local --noheader --states=running,suspended,completing,configuring '--format=hbrun|%A|%u|%P|%C|%l|%M|%N|%V|%j') || exit
printf '%s\n' "hbnow|$now" "$nodes" "$runs"
{
  squeue --all --local --noheader --array --states=pending --sort=-p,i '--format=hbwait|%i|%u|%P|%C|%l|%r|%V|%j' || echo hbfailed
} | head -n 5000
echo hbend
)sh";

/// A limit that is none (UNLIMITED, of a partition without one).
constexpr std::chrono::seconds kNoLimit = std::chrono::hours{24 * 365};

/// Reasons of those that start as soon as there is room for them (squeue(1), JOB REASON CODES).
constexpr std::array kMayStart{"None", "Priority", "Resources", "(null)", ""};

/// Of a count such as 12 or, as some versions write it, 12K.
double cpu_count(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const bool is_thousands = end != text.data() + text.size() && *end == 'K';
  return is_thousands ? value * 1024 : value;
}

std::vector<std::string> node_list(const std::string& text) {
  return text.empty() || text == "(null)" ? std::vector<std::string>{} : node_names(text);
}

/// "hbpart|name*|allocated/idle/other/total|nodes".
void add_partition(const std::vector<std::string>& parts, std::vector<WatchedPartition>& all) {
  const bool is_default = parts[1].ends_with('*');
  const std::string name = parts[1].substr(0, parts[1].size() - (is_default ? 1 : 0));
  const auto counts = split(parts[2], '/');
  if (counts.size() != 4) return;
  auto at = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  if (at == all.end()) at = all.insert(all.end(), WatchedPartition{.name = name});
  at->is_default = is_default;
  at->cpus += cpu_count(counts[0]) + cpu_count(counts[1]);
  at->busy_cpus += cpu_count(counts[0]);
  for (std::string& node : node_list(parts[3])) at->nodes.push_back(std::move(node));
}

/// Where some nodes are away, those at the head of the queue have a sentence for their reason.
bool may_start(const std::string& reason) {
  return std::find(kMayStart.begin(), kMayStart.end(), reason) != kMayStart.end() ||
         reason.starts_with("Nodes required for job are DOWN");
}

std::chrono::seconds age_of(const std::string& submitted, std::optional<std::chrono::seconds> now) {
  const auto moment = read_moment(submitted);
  if (!moment || !now) return std::chrono::seconds{-1};
  return std::max(*now - *moment, std::chrono::seconds{0});
}

/// Of accounts and QOS, and of arrays.
bool is_limit(const std::string& reason) {
  return meaning_of("PENDING", reason).state == BatchState::LimitReached ||
         reason == "JobArrayTaskLimit";
}

WatchedJob job_of(const std::vector<std::string>& parts) {
  WatchedJob job{.number = parts[1],
                 .user = parts[2],
                 .partitions = split(parts[3], ','),
                 .cpus = cpu_count(parts[4])};
  job.limit = read_duration(parts[5]).value_or(kNoLimit);
  return job;
}

}  // namespace

CommandLine list_queue() {
  return {.argv = {"sh", "-c", kQueue}, .environment = {}, .input = {}};
}

Result<WatchedQueue> read_queue(const CommandOutput& output) {
  const auto distrust = [](const std::string& why) {
    return Error{Error::Kind::Transient, "cannot look at SLURM's queue: " + why};
  };
  if (output.timed_out) return distrust("squeue gave no answer in time");
  if (output.exit_code != 0) return distrust(one_line(output.standard_error));
  WatchedQueue queue;
  bool whole = false;
  std::optional<std::chrono::seconds> now;
  std::istringstream lines(output.standard_output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("hbnow|")) {
      now = read_moment(std::string_view(line).substr(6));
    } else if (line.starts_with("hbpart|")) {
      if (const auto parts = fields(line, 4); !parts.empty())
        add_partition(parts, queue.partitions);
    } else if (line.starts_with("hbrun|")) {
      const auto parts = fields(line, 10);
      if (parts.empty()) return distrust("a line that is no batch job: " + one_line(line));
      WatchedJob job = job_of(parts);
      job.runs = true;
      job.elapsed = read_duration(parts[6]).value_or(std::chrono::seconds{0});
      job.nodes = node_list(parts[7]);
      job.age = age_of(parts[8], now);
      job.name = parts[9];
      queue.jobs.push_back(std::move(job));
    } else if (line.starts_with("hbwait|")) {
      const auto parts = fields(line, 9);
      if (parts.empty()) return distrust("a line that is no batch job: " + one_line(line));
      WatchedJob job = job_of(parts);
      job.may_start = may_start(parts[6]);
      job.at_limit = is_limit(parts[6]);
      job.age = age_of(parts[7], now);
      job.name = parts[8];
      queue.jobs.push_back(std::move(job));
    }
    if (line == "hbfailed") return distrust(one_line(output.standard_error));
    whole = line == "hbend";
  }
  if (!whole) return distrust("half an answer");
  return queue;
}

}  // namespace hpcbatch::slurm
