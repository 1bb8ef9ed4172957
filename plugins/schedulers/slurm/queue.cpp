#include "queue.hpp"

#include "answer_lines.hpp"
#include "listing.hpp"
#include "room.hpp"
#include "states.hpp"
#include "submission.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>

namespace hpcbatch::slurm {
namespace {

/// What waits is listed by falling priority, arrays task by task, and no more of it than can matter
/// for what starts within days.  Names are asked for of this user's own alone: what others call
/// theirs is none of our business, and a name may hold lines of any kind (squeue(1)).  All else here
/// is SLURM's own word.
constexpr const char* kShown = R"sh(
own=$(SQUEUE_FORMAT="$mark%A$mark%j$mark" squeue --me --all --local --noheader --states=pending,running,suspended,completing,configuring) || exit
nodes=$(sinfo --all --noheader --exact '--format=hbpart|%P|%C|%N|%a') || exit
export SLURM_TIME_FORMAT=%s
now=$(date +%s)
runs=$(squeue --all --local --noheader --states=running,suspended,completing,configuring '--format=hbrun|%A|%u|%P|%C|%l|%M|%N|%V') || exit
printf 'hbmark %s\n%s\n%send\n' "$mark" "$own" "$mark"
printf '%s\n' "hbnow|$now" "$nodes" "$runs"
)sh";
constexpr const char* kWaiting = R"sh({
  squeue --all --local --noheader --array --states=pending --sort=-p,i '--format=hbwait|%i|%u|%P|%C|%l|%V|%r' || echo hbfailed
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

/// Partitions by their names while they are read.
using Places = std::unordered_map<std::string, std::size_t>;

std::vector<std::string> node_list(const std::string& text, NodeLists& lists) {
  return text.empty() || text == "(null)" ? std::vector<std::string>{} : lists.names(text);
}

/// "hbpart|name*|allocated/idle/other/total|nodes".
void add_partition(const std::vector<std::string>& parts, Places& places, NodeLists& lists,
                   std::vector<WatchedPartition>& all) {
  const bool is_default = parts[1].ends_with('*');
  const std::string name = parts[1].substr(0, parts[1].size() - (is_default ? 1 : 0));
  const auto counts = split(parts[2], '/');
  if (counts.size() != 4) return;
  const auto [place, is_new] = places.try_emplace(name, all.size());
  if (is_new) all.push_back(WatchedPartition{.name = name});
  WatchedPartition& at = all[place->second];
  at.is_default = is_default;
  at.cpus += cpu_count(counts[0]) + cpu_count(counts[1]);
  at.busy_cpus += cpu_count(counts[0]);
  for (std::string& node : node_list(parts[3], lists)) at.nodes.push_back(std::move(node));
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

/// By number.
using Names = std::unordered_map<std::string, std::string>;

Names names_within(const std::vector<MarkedRecord>& records) {
  Names names;
  for (const MarkedRecord& record : records)
    names.try_emplace(std::string(record.head), std::string(record.free));
  return names;
}

WatchedJob job_of(const std::vector<std::string>& parts, const Names& names) {
  const auto own = names.find(parts[1]);
  WatchedJob job{.number = parts[1],
                 .name = own == names.end() ? "" : own->second,
                 .user = parts[2],
                 .partitions = split(parts[3], ','),
                 .cpus = cpu_count(parts[4])};
  job.limit = slurm_time(parts[5]).value_or(kNoLimit);
  return job;
}

}  // namespace

CommandLine list_queue() {
  return {.argv = {"sh", "-c", std::string(kChooseMark) + kShown + kRoomLines + kWaiting},
          .environment = {},
          .input = {}};
}

Result<WatchedQueue> read_queue(const CommandOutput& output) {
  const auto distrust = [](const std::string& why) {
    return Error{Error::Kind::Transient, "cannot look at SLURM's queue: " + why};
  };
  if (output.timed_out) return distrust("squeue gave no answer in time");
  if (output.exit_code != 0) return distrust(one_line(output.standard_error));
  const auto own = read_marked(output.standard_output);
  if (!own) return distrust("half an answer");
  const Names names = names_within(own->records);
  WatchedQueue queue;
  Places places;
  NodeLists lists;
  bool whole = false;
  std::optional<std::chrono::seconds> now;
  std::istringstream lines{std::string(own->rest)};
  for (std::string line; std::getline(lines, line);) {
    if (line == "hbfailed") return distrust(one_line(output.standard_error));
    whole = line == "hbend";
    const auto parts = split(line, '|');
    if (parts[0] == "hbnow" && parts.size() == 2) {
      now = read_moment(parts[1]);
    } else if (parts[0] == "hbpart" && parts.size() >= 4) {
      add_partition(parts, places, lists, queue.partitions);
    } else if (parts[0] == "hbrun" && parts.size() == 9) {
      WatchedJob job = job_of(parts, names);
      job.runs = true;
      job.elapsed = slurm_time(parts[6]).value_or(std::chrono::seconds{0});
      job.nodes = node_list(parts[7], lists);
      job.age = age_of(parts[8], now);
      queue.jobs.push_back(std::move(job));
    } else if (parts[0] == "hbwait" && parts.size() == 8) {
      WatchedJob job = job_of(parts, names);
      job.age = age_of(parts[6], now);
      job.may_start = may_start(parts[7]);
      job.at_limit = is_limit(parts[7]);
      queue.jobs.push_back(std::move(job));
    } else if (parts[0] == "hbrun" || parts[0] == "hbwait") {
      return distrust("a line that is no batch job: " + one_line(line));
    }
  }
  if (!whole) return distrust("half an answer");
  return queue;
}

}  // namespace hpcbatch::slurm
