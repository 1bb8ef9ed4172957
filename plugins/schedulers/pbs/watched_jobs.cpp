#include "watched_jobs.hpp"

#include "jobs.hpp"
#include "records.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace hpcbatch::pbs {
namespace {

using std::chrono::seconds;

bool mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "n1/0*4+n2/1" of OpenPBS, "n1/0-3+n2/1" of Torque: how many that is.
double cpus_in_use(std::string_view exec_host) {
  double cpus = 0;
  for (const std::string_view slot : parts_of(exec_host, '+')) {
    const auto slash = slot.find('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view place = slot.substr(slash + 1);
    const auto star = place.find('*');
    cpus += star == std::string_view::npos ? slots_in(place)
                                           : bounded(read_number(place.substr(star + 1)));
  }
  return std::min(cpus, static_cast<double>(kMostCpusOfAJob));
}

/// What it waits for where it shares no node: PBS Administrator's Guide, table of what place=
/// of a batch job and sharing of a vnode make together.
double cpus_waited_for(const Record& job, const StartingQueue& queue) {
  const double asked = cpus_asked_for(job);
  const std::string_view place = job.value("Resource_List.place");
  const bool is_alone =
      mentions(place, "excl") || (queue.gives_whole_nodes && !mentions(place, "shared"));
  if (!is_alone) return asked;
  const double nodes = std::max(1.0, bounded(read_number(job.value("Resource_List.nodect"))));
  return std::clamp(nodes * queue.cpus_of_a_node, asked, static_cast<double>(kMostCpusOfAJob));
}

bool may_start(std::string_view comment) {
  const BatchState state = state_by_comment(comment);
  // Where some nodes are away, the first in the queue are told so.
  if (state == BatchState::Outage)
    return !mentions(comment, "Can Never Run") && !mentions(comment, "started");
  constexpr std::array<std::string_view, 7> kNotForNow{
      "primetime",     "edicated ",       "zero shares",     "has reached",
      "would exceed ", "queue resource:", "server resource:"};
  return state != BatchState::LimitReached && state != BatchState::NeverStarts &&
         std::none_of(kNotForNow.begin(), kNotForNow.end(),
                      [&](std::string_view words) { return mentions(comment, words); });
}

/// Of an array, those that have not begun.
std::size_t that_wait(const Record& job) {
  if (job.value("array_state_count").empty()) return job.value("job_state") == "B" ? 0 : 1;
  for (const std::string_view count : parts_of(job.value("array_state_count"), ' ')) {
    constexpr std::string_view kQueued = "Queued:";
    if (!count.starts_with(kQueued)) continue;
    const long number = read_number(count.substr(kQueued.size())).value_or(0);
    return static_cast<std::size_t>(std::clamp(number, 0L, static_cast<long>(kMostThatWait)));
  }
  return 0;
}

/// As the scheduler goes through them unless it is told otherwise: queue by queue, in a queue as
/// the server lists them.  Priorities and the time that counts are nought where a site uses none.
struct Rank {
  long queue{0};
  long own{0};
  seconds waited{0};

  bool operator<(const Rank& other) const {
    return std::tie(other.queue, other.own, other.waited) < std::tie(queue, own, waited);
  }
};

struct ThatWait {
  Rank rank;
  WatchedJob job;
  std::size_t count{1};
};

class Listing {
 public:
  Listing(const Names& own, const QueuesToWatch& queues, const std::vector<ComputeNode>& nodes,
          std::optional<std::chrono::sys_seconds> now)
      : own_(own), queues_(queues), now_(now) {
    for (const ComputeNode& node : nodes) nodes_.try_emplace(node.name, &node);
  }

  void take(const Record& record, const std::string& number) {
    const std::string_view state = record.value("job_state");
    switch (state.size() == 1 ? state.front() : '?') {
      case 'R':
      case 'E':  // its processes may still be there
      case 'S':
      case 'U':
        return runs(record, number);
      case 'Q':
        ++listed_.waiting;
        return waits(record, number, may_start(record.value("comment")));
      case 'B':  // an array some of which has begun; what of it runs is listed by itself
        return waits(record, number, may_start(record.value("comment")));
      case 'H':
      case 'W':  // for its time
      case 'T':  // on its way to another queue or server
        return waits(record, number, false);
      default:
        return;  // ended, or moved to another server
    }
  }

  /// Of what runs nobody could say how long it has.
  bool knows_no_beginning() const { return !listed_.jobs.empty() && !knows_a_beginning_; }

  ListedJobs listed() && {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const ThatWait& a, const ThatWait& b) { return a.rank < b.rank; });
    std::size_t left = kMostThatWait;
    for (const ThatWait& each : waiting_) {
      const std::size_t count = std::min(each.count, left);
      listed_.jobs.insert(listed_.jobs.end(), count, each.job);
      left -= count;
    }
    return std::move(listed_);
  }

 private:
  WatchedJob job_of(const Record& record, const std::string& number) const {
    const std::string_view owner = record.value("Job_Owner");
    const auto name = own_.find(number);
    WatchedJob job{.number = number,
                   .name = name == own_.end() ? "" : name->second,
                   .user = std::string(owner.substr(0, owner.find('@')))};
    const std::string queue(record.value("queue"));
    const auto known = queues_.starting.find(queue);
    job.partitions = known == queues_.starting.end() ? std::vector{queue} : known->second.names;
    job.limit = limit_asked_for(record);
    return job;
  }

  void runs(const Record& record, const std::string& number) {
    WatchedJob job = job_of(record, number);
    job.runs = true;
    job.nodes = names_.of(record.value("exec_host"));
    job.cpus = std::max(cpus_asked_for(record), cpus_in_use(record.value("exec_host")));
    double whole = 0;
    for (const std::string& name : job.nodes) {
      const auto node = nodes_.find(name);
      if (node != nodes_.end() && node->second->is_taken_whole) whole += node->second->cpus;
    }
    job.cpus = std::max(job.cpus, whole);
    const std::string_view state = record.value("job_state");
    // Another runs on them; it goes on when that is done.
    if (state == "S" || state == "U") job.cpus = 0;
    if (const auto elapsed = elapsed_of(record)) {
      job.elapsed = *elapsed;
      knows_a_beginning_ = true;
    }
    listed_.jobs.push_back(std::move(job));
  }

  void waits(const Record& record, const std::string& number, bool may_start) {
    const auto queue = queues_.starting.find(std::string(record.value("queue")));
    // In a routing queue is what no queue behind it takes for now.
    const bool can_start = queue != queues_.starting.end() && queue->second.is_started;
    ThatWait entry{.rank = {}, .job = job_of(record, number), .count = that_wait(record)};
    entry.rank = {queue == queues_.starting.end() ? 0 : queue->second.priority,
                  read_number(record.value("Priority")).value_or(0),
                  pbs_time(record.value("eligible_time")).value_or(seconds{0})};
    entry.job.may_start = may_start && can_start;
    entry.job.cpus = queue == queues_.starting.end() ? cpus_asked_for(record)
                                                     : cpus_waited_for(record, queue->second);
    waiting_.push_back(std::move(entry));
  }

  /// The server hears only now and then how long one has run: the clock knows it better.
  std::optional<seconds> elapsed_of(const Record& record) const {
    const std::string_view started = record.value("stime");  // Torque: start_time
    const auto begin = read_moment(started.empty() ? record.value("start_time") : started);
    const auto told = pbs_time(record.value("resources_used.walltime"));
    if (!(begin && now_)) return told ? std::optional(std::min(*told, kNoLimit)) : std::nullopt;
    return std::clamp(*now_ - *begin, seconds{0}, kNoLimit);
  }

  const Names& own_;
  const QueuesToWatch& queues_;
  NodeNames names_;
  std::optional<std::chrono::sys_seconds> now_;
  std::unordered_map<std::string_view, const ComputeNode*> nodes_;
  ListedJobs listed_;
  std::vector<ThatWait> waiting_;
  bool knows_a_beginning_{false};
};

}  // namespace

Result<ListedJobs> listed_jobs(const std::vector<Record>& records, const Names& own,
                               const QueuesToWatch& queues, const std::vector<ComputeNode>& nodes,
                               std::optional<std::chrono::sys_seconds> now) {
  Listing listing(own, queues, nodes, now);
  std::unordered_set<std::string> known;
  for (const Record& record : records) {
    const std::string number = after(record.head, "Job Id:");
    if (number.empty() || !known.insert(number).second) continue;
    if (record.value("job_state").empty())
      return Error{Error::Kind::Transient, "qstat gave no state of batch job " + number};
    listing.take(record, number);
  }
  if (listing.knows_no_beginning())
    return Error{Error::Kind::Transient, "qstat says of no batch job since when it runs"};
  return std::move(listing).listed();
}

}  // namespace hpcbatch::pbs
