#include "watched_jobs.hpp"

#include "jobs.hpp"
#include "queues.hpp"
#include "records.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace hpcbatch::pbs {
namespace {

// More are no compute nodes of one server, and no cpus of one node.
constexpr std::size_t kMostNodes = 20'000;
constexpr long kMostCpusOfANode = 100'000;

/// All others (down, offline, stale, state-unknown, provisioning...) get no batch job: PBS
/// Administrator's Guide, "Vnode states"; Torque, "Node states".  A host whose vnodes differ has
/// "<various>".
constexpr std::array<std::string_view, 9> kUp{"free",          "busy",           "job-busy",
                                              "job-exclusive", "resv-exclusive", "job-sharing",
                                              "reserve",       "time-shared",    "<various>"};

bool is_up(std::string_view state) {
  const auto words = parts_of(state, ',');
  return !words.empty() && std::all_of(words.begin(), words.end(), [](std::string_view word) {
    return std::find(kUp.begin(), kUp.end(), word) != kUp.end();
  });
}

double cpus_in(std::string_view written) {
  return static_cast<double>(std::clamp(read_number(written).value_or(0), 0L, kMostCpusOfANode));
}

/// Of Torque's "0-3/12.server,7/13.server", or with blanks, or a slot at a time.
double slots_with_jobs(std::string_view jobs) {
  double slots = 0;
  for (const std::string_view part : parts_of(jobs, ','))
    slots += slots_in(part.substr(0, part.find('/')));
  return slots;
}

ComputeNode compute_node(Record record) {
  const bool is_torque = !record.value("np").empty();
  const auto state = record.value("state");
  const auto sharing = record.value("sharing");
  ComputeNode node;
  node.name = record.head.substr(0, record.head.find_last_not_of(" \t\r") + 1);
  node.is_up = is_up(state);
  node.is_taken_whole =
      has_word(state, "resv-exclusive") || (!is_torque && has_word(state, "job-exclusive"));
  node.is_given_whole = sharing.starts_with("default_excl") || sharing.starts_with("force_excl");
  const std::string_view offered = record.value("resources_available.ncpus");
  node.cpus =
      cpus_in(is_torque ? record.value("np") : (offered.empty() ? record.value("pcpus") : offered));
  node.busy_cpus = is_torque ? slots_with_jobs(record.value("jobs"))
                             : cpus_in(record.value("resources_assigned.ncpus"));
  if (node.is_taken_whole || has_word(state, "job-exclusive")) node.busy_cpus = node.cpus;
  node.busy_cpus = std::min(node.busy_cpus, node.cpus);
  node.record = std::move(record);
  return node;
}

/// What says of which kind nodes are; anything else is an amount.
bool is_a_word(std::string_view value) {
  const auto first = value.empty() ? ' ' : static_cast<char>(value.front() | 0x20);
  return first >= 'a' && first <= 'z';
}

/// OpenPBS gives each chunk of a batch job what its queue has in default_chunk, such as Qlist
/// (PBS Administrator's Guide, "Associating vnodes with queues"); Torque asks for properties.
bool has_what_is_asked_for(const Record& queue, const ComputeNode& node) {
  constexpr std::string_view kChunk = "default_chunk.";
  for (const auto& [name, value] : queue.attributes) {
    if (!name.starts_with(kChunk) || !is_a_word(value)) continue;
    const std::string offered = "resources_available." + name.substr(kChunk.size());
    if (!has_word(node.record.value(offered), value)) return false;
  }
  for (const char* name : {"resources_default.neednodes", "features_required"}) {
    for (const std::string_view word : parts_of(queue.value(name), ':')) {
      if (is_a_word(word) && !word.starts_with("ppn=") && word != node.name &&
          !has_word(node.record.value("properties"), word))
        return false;
    }
  }
  // Each scheduler of an OpenPBS with several has queues and nodes of its own.
  return queue.value("partition") == node.record.value("partition");
}

// More are no queues of one server; reservations have one each.
constexpr std::size_t kMostQueues = 500;
constexpr double kMostCpus = 1e9;

using QueueRecords = std::map<std::string, const Record*>;

bool is_routing(const Record& queue) {
  return queue.value("queue_type") == "Route";
}

/// Names of queues that start batch jobs.
std::set<std::string> behind(const Record& route, const QueueRecords& queues,
                             const std::string& server) {
  std::set<std::string> seen;
  std::set<std::string> starting;
  std::vector<const Record*> open{&route};
  while (!open.empty()) {
    const Record* from = open.back();
    open.pop_back();
    for (const std::string_view place : parts_of(from->value("route_destinations"), ',')) {
      const auto at = std::min(place.find('@'), place.size());
      const bool is_elsewhere = at < place.size() && place.substr(at + 1) != server;
      const auto queue = queues.find(std::string(place.substr(0, at)));
      if (is_elsewhere || queue == queues.end() || queue->second->value("enabled") == "False" ||
          !seen.insert(queue->first).second)
        continue;
      if (is_routing(*queue->second)) {
        open.push_back(queue->second);
      } else {
        starting.insert(queue->first);
      }
    }
  }
  return starting;
}

WatchedPartition partition_of(const std::string& name, const std::set<const ComputeNode*>& nodes) {
  WatchedPartition partition{.name = name};
  for (const ComputeNode* node : nodes) {
    partition.cpus = std::min(kMostCpus, partition.cpus + node->cpus);
    partition.busy_cpus = std::min(kMostCpus, partition.busy_cpus + node->busy_cpus);
    partition.nodes.push_back(node->name);
  }
  return partition;
}

StartingQueue starting_queue(const Record& record, const std::string& name,
                             const WatchedPartition& partition,
                             const std::vector<const ComputeNode*>& nodes) {
  StartingQueue queue{.names = {name}};
  queue.priority = read_number(record.value("Priority")).value_or(0);
  queue.is_started = record.value("started") != "False";
  if (nodes.empty()) return queue;
  queue.cpus_of_a_node = partition.cpus / static_cast<double>(nodes.size());
  queue.gives_whole_nodes = std::all_of(
      nodes.begin(), nodes.end(), [](const ComputeNode* node) { return node->is_given_whole; });
  return queue;
}

/// Of "Transit:0 Queued:3 Held:1 Waiting:0 Running:5 Exiting:0".
long queued_in(std::string_view counts) {
  constexpr std::string_view kQueued = "Queued:";
  constexpr long kMost = 1'000'000'000;
  for (const std::string_view part : parts_of(counts, ' ')) {
    if (part.starts_with(kQueued))
      return std::clamp(read_number(part.substr(kQueued.size())).value_or(0), 0L, kMost);
  }
  return 0;
}

struct Server {
  std::string name;
  std::string default_queue;
  bool are_others_hidden{false};
};

Server server_among(const std::vector<Record>& things) {
  for (const Record& thing : things) {
    if (std::string name = after(thing.head, "Server:"); !name.empty())
      return {std::move(name), std::string(thing.value("default_queue")),
              thing.value("query_other_jobs") != "True"};
  }
  return {};
}

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

double slots_in(std::string_view ranges) {
  double slots = 0;
  for (const std::string_view range : parts_of(ranges, ',')) {
    const auto dash = range.find('-');
    const long first = read_number(range.substr(0, dash)).value_or(-1);
    const long last =
        dash == std::string_view::npos ? first : read_number(range.substr(dash + 1)).value_or(-1);
    const bool is_range = first >= 0 && last >= first && last - first < kMostCpusOfANode;
    if (is_range) slots += static_cast<double>(last - first + 1);
  }
  return slots;
}

std::vector<ComputeNode> compute_nodes(const std::string& text) {
  std::vector<ComputeNode> nodes;
  for (Record& record : read_records(text, Repeated::FirstCounts)) {
    if (nodes.size() == kMostNodes) break;
    if (!record.value("state").empty()) nodes.push_back(compute_node(std::move(record)));
  }
  return nodes;
}

std::vector<const ComputeNode*> nodes_of_queue(const Record& queue, const std::string& name,
                                               const std::vector<ComputeNode>& nodes) {
  const bool has_its_own = std::any_of(nodes.begin(), nodes.end(), [&](const ComputeNode& node) {
    return node.record.value("queue") == name;
  });
  std::vector<const ComputeNode*> found;
  for (const ComputeNode& node : nodes) {
    if (node.is_up && node.record.value("queue") == (has_its_own ? name : "") &&
        has_what_is_asked_for(queue, node))
      found.push_back(&node);
  }
  return found;
}

QueuesToWatch queues_to_watch(const std::vector<Record>& things,
                              const std::vector<ComputeNode>& nodes) {
  const Server server = server_among(things);
  QueueRecords records;
  for (const Record& thing : things) {
    if (const std::string name = after(thing.head, "Queue:");
        !name.empty() && records.size() < kMostQueues)
      records.try_emplace(name, &thing);
  }
  QueuesToWatch all;
  all.are_others_hidden = server.are_others_hidden;
  std::map<std::string, std::set<const ComputeNode*>> nodes_of;
  for (const auto& [name, record] : records) {
    all.waiting += queued_in(record->value("state_count"));
    if (is_routing(*record)) continue;
    const auto own = nodes_of_queue(*record, name, nodes);
    nodes_of[name] = {own.begin(), own.end()};
    all.partitions.push_back(partition_of(name, nodes_of[name]));
    all.starting[name] = starting_queue(*record, name, all.partitions.back(), own);
  }
  for (const auto& [name, record] : records) {
    if (!is_routing(*record)) continue;
    std::set<const ComputeNode*> reached;
    for (const std::string& starting : behind(*record, records, server.name)) {
      reached.insert(nodes_of[starting].begin(), nodes_of[starting].end());
      all.starting[starting].names.push_back(name);
    }
    all.partitions.push_back(partition_of(name, reached));
  }
  for (WatchedPartition& partition : all.partitions)
    partition.is_default = partition.name == server.default_queue;
  return all;
}

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
