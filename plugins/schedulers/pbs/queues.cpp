#include "queues.hpp"

#include "dialect.hpp"
#include "pbs.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>

namespace hpcbatch::pbs {
namespace {

/// "a=1,b=2": the value of one key.
std::string_view part_of(std::string_view status, std::string_view key) {
  while (!status.empty()) {
    const auto comma = std::min(status.find(','), status.size());
    const std::string_view item = status.substr(0, comma);
    if (item.starts_with(key) && item.substr(key.size()).starts_with("="))
      return item.substr(key.size() + 1);
    status.remove_prefix(std::min(comma + 1, status.size()));
  }
  return {};
}

/// The kind whose words in the configuration are true of this node: a property of Torque's, or
/// resources as OpenPBS has them.
std::string gpu_kind(const Settings& settings, const Record& node) {
  for (const auto& [kind, words] : settings.gpu_kinds) {
    const auto equals = words.find('=');
    const bool is_so = equals == std::string::npos
                           ? has_word(node.value("properties"), words)
                           : has_word(node.value("resources_available." + words.substr(0, equals)),
                                      words.substr(equals + 1, words.find(':') - equals - 1));
    if (is_so) return kind;
  }
  return "";
}

Node read_node(const Settings& settings, const Record& record) {
  const auto first_of = [&](std::initializer_list<std::string_view> values) {
    for (const std::string_view value : values) {
      if (!value.empty()) return value;
    }
    return std::string_view();
  };
  const std::string_view status = record.value("status");
  Node node;
  node.queue = record.value("queue");
  node.cpus = static_cast<double>(read_number(first_of({record.value("resources_available.ncpus"),
                                                        record.value("np"), record.value("pcpus")}))
                                      .value_or(0));
  node.memory = read_size(first_of({record.value("resources_available.mem"),
                                    part_of(status, "physmem"), part_of(status, "availmem")}))
                    .value_or(0);
  const long gpus =
      read_number(first_of({record.value("resources_available.ngpus"), record.value("gpus")}))
          .value_or(0);
  if (gpus > 0) node.gpus[gpu_kind(settings, record)] = static_cast<std::uint32_t>(gpus);
  // Sites that count each kind by a resource of its own.
  for (const auto& [kind, words] : settings.gpu_kinds) {
    if (words.find('=') != std::string::npos) continue;
    const long own = read_number(record.value("resources_available." + words)).value_or(0);
    if (own > 0) node.gpus[kind] = static_cast<std::uint32_t>(own);
  }
  return node;
}

/// Not every user may ask for the nodes; then the queues are told without them.  With the server,
/// which may have limits of its own, and with who asks: some are for him alone.
constexpr const char* kSurvey = R"sh(
queues=$(qstat -Q -f) || exit
printf '%s\n\n' "$queues"
printf 'hbuser %s\n    group = %s\n\n' "$(id -un)" "$(id -gn)"
qstat -B -f 2>/dev/null
printf '\nhbnodes\n'
pbsnodes -a 2>/dev/null
echo hbend
)sh";

struct Who {
  std::string user;
  std::string group;
};

std::optional<std::uint32_t> count_of(std::string_view written) {
  const auto number = read_number(written);
  if (!number || *number < 0 || *number > 1'000'000'000) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

/// The number behind `entry` in "[u:PBS_GENERIC=10],[g:physics=20]".
std::optional<std::uint32_t> entry_of(std::string_view list, const std::string& entry) {
  const auto at = list.find("[" + entry + "=");
  if (at == std::string_view::npos) return std::nullopt;
  list.remove_prefix(at + entry.size() + 2);
  return count_of(list.substr(0, list.find_first_not_of("0123456789")));
}

std::optional<std::uint32_t> lower_of(std::optional<std::uint32_t> a,
                                      std::optional<std::uint32_t> b) {
  return a && b ? std::min(a, b) : (a ? a : b);
}

/// What one user may have of a limit: his own entry goes before that of any user, the same holds
/// for his group, and all are below what everybody has together (PBS Administrator's Guide,
/// "Managing resource usage by users, groups, and projects").
std::optional<std::uint32_t> limit_of(std::string_view list, const Who& who) {
  const auto own_or_any = [&](const std::string& kind, const std::string& name) {
    const auto own = name.empty() ? std::nullopt : entry_of(list, kind + ":" + name);
    return own ? own : entry_of(list, kind + ":PBS_GENERIC");
  };
  return lower_of(lower_of(own_or_any("u", who.user), own_or_any("g", who.group)),
                  entry_of(list, "o:PBS_ALL"));
}

JobLimits limits_of(const Record& thing, const Who& who) {
  const auto of_user = [&](const char* name, const char* older) {
    return lower_of(limit_of(thing.value(name), who), count_of(thing.value(older)));
  };
  return {of_user("max_run", "max_user_run"), of_user("max_queued", "max_user_queuable")};
}

/// Of GPUs whose kind has no name in the configuration only the number is asked for, whatever they
/// are called.
void add_kind(const Node& node, std::vector<NodeKind>& kinds) {
  std::map<std::string, std::uint32_t> gpus;
  for (const auto& [kind, count] : node.gpus) gpus[kind.empty() ? "gpu" : kind] = count;
  const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const NodeKind& kind) {
    return kind.cpus == node.cpus && kind.memory == node.memory && kind.gpus == gpus;
  });
  if (same == kinds.end()) {
    kinds.push_back({1, node.cpus, node.memory, gpus});
  } else {
    ++same->nodes;
  }
}

/// Walltimes of a day are proposed, or less where a queue takes no more.
constexpr std::chrono::seconds kProposed = std::chrono::hours(24);

std::string why_closed(const Record& queue) {
  if (queue.value("enabled") == "False") return "not enabled";
  if (queue.value("started") == "False") return "not started";
  return "";
}

/// Why nothing is proposed for a queue that is open.
std::string why_not(const Record& queue) {
  if (pbs_time(queue.value("resources_min.walltime")).value_or(kProposed) <= kProposed) return "";
  return "for walltimes of " + std::string(queue.value("resources_min.walltime")) + " and more";
}

/// Of one batch job; with one node it is the node's.
void cut_to(const Record& queue, NodeKind& kind) {
  const auto cpus = read_number(queue.value("resources_max.ncpus"));
  const auto memory = read_size(queue.value("resources_max.mem"));
  const auto gpus = read_number(queue.value("resources_max.ngpus"));
  if (cpus && *cpus > 0) kind.cpus = std::min(kind.cpus, static_cast<double>(*cpus));
  if (memory && *memory > 0) kind.memory = std::min(kind.memory, *memory);
  if (!gpus || *gpus < 0) return;
  auto left = static_cast<std::uint32_t>(std::min(*gpus, 1'000'000L));
  for (auto& [name, count] : kind.gpus) {
    count = std::min(count, left);
    left -= count;
  }
  std::erase_if(kind.gpus, [](const auto& gpu) { return gpu.second == 0; });
}

/// Whether the queue asks for more than such a node has.
bool is_too_small(const Record& queue, const NodeKind& kind) {
  std::uint64_t gpus = 0;
  for (const auto& [name, count] : kind.gpus) gpus += count;
  return static_cast<double>(read_number(queue.value("resources_min.ncpus")).value_or(0)) >
             kind.cpus ||
         read_size(queue.value("resources_min.mem")).value_or(0) > kind.memory ||
         read_number(queue.value("resources_min.ngpus")).value_or(0) > static_cast<long>(gpus);
}

SurveyedPartition surveyed(const Record& queue, const std::string& name,
                           const std::vector<Node>& nodes, const Who& who) {
  SurveyedPartition partition;
  partition.name = name;
  partition.walltime = pbs_time(queue.value("resources_max.walltime"));
  partition.limits = limits_of(queue, who);
  partition.why_closed = why_closed(queue);
  partition.is_open = partition.why_closed.empty();
  if (partition.is_open) partition.why_closed = why_not(queue);
  if (!partition.why_closed.empty()) return partition;
  std::vector<NodeKind> whole;
  for (const Node& node : nodes) {
    if (node.queue.empty() || node.queue == name) add_kind(node, whole);
  }
  for (NodeKind& kind : whole) {
    cut_to(queue, kind);
    if (!is_too_small(queue, kind)) partition.kinds.push_back(std::move(kind));
  }
  return partition;
}

/// The first queue behind a routing one that is open and takes batch jobs from such alone; one that
/// takes them itself needs no routing.
const Record* routed_to(const Record& route, const std::vector<Record>& things) {
  std::string server;
  for (const Record& thing : things) {
    if (const auto name = after(thing.head, "Server:"); !name.empty()) server = name;
  }
  for (const Record& thing : things) {
    const std::string name = after(thing.head, "Queue:");
    const std::string_view behind = route.value("route_destinations");
    std::string with_server = name;
    with_server.append("@").append(server);
    // Of another server they are named with it.
    if (!name.empty() && (has_word(behind, name) || has_word(behind, with_server)) &&
        thing.value("from_route_only") == "True" && why_closed(thing).empty() &&
        why_not(thing).empty())
      return &thing;
  }
  return nullptr;
}

SurveyedPartition routing(const Record& route, const std::string& name,
                          const QueuesAndNodes& answer, const Who& who) {
  const Record* target = routed_to(route, answer.things);
  if (!target) {
    SurveyedPartition partition = surveyed(route, name, {}, who);
    if (partition.why_closed.empty()) partition.why_closed = "a routing queue";
    return partition;
  }
  SurveyedPartition partition = surveyed(*target, after(target->head, "Queue:"), answer.nodes, who);
  const JobLimits own = limits_of(route, who);
  partition.name = name;
  partition.why_closed = why_closed(route);
  partition.is_open = partition.why_closed.empty();
  partition.limits = {lower_of(partition.limits.running, own.running),
                      lower_of(partition.limits.all, own.all)};
  const auto longest = pbs_time(route.value("resources_max.walltime"));
  if (longest) partition.walltime = std::min(*longest, partition.walltime.value_or(*longest));
  return partition;
}

Who who_asked(const std::vector<Record>& things) {
  for (const Record& thing : things) {
    const std::string user = after(thing.head, "hbuser");
    if (!user.empty()) return {user, std::string(thing.value("group"))};
  }
  return {};
}

}  // namespace

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto end = std::min(list.find_first_of(", "), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

Error no_offers(const std::string& why) {
  return {Error::Kind::Transient, "cannot list the queues of PBS: " + why};
}

Result<QueuesAndNodes> read_queues_and_nodes(const Settings& settings,
                                             const CommandOutput& output) {
  if (output.timed_out) return no_offers("qstat gave no answer in time");
  if (output.exit_code != 0) {
    return no_offers("exit " + std::to_string(output.exit_code) + ": " +
                     one_line(output.standard_error));
  }
  const std::string& text = output.standard_output;
  const auto middle = text.find("\nhbnodes\n");
  const auto end = text.rfind("\nhbend\n");
  if (middle == std::string::npos || end == std::string::npos || end < middle)
    return no_offers("half an answer");
  QueuesAndNodes answer{read_records(text.substr(0, middle + 1), Repeated::IsAList), {}};
  for (const Record& record :
       read_records(text.substr(middle + 9, end + 1 - (middle + 9)), Repeated::FirstCounts)) {
    if (!record.attributes.empty()) answer.nodes.push_back(read_node(settings, record));
  }
  return answer;
}

CommandLine Pbs::survey() const {
  return in_dialect(settings_.dialect, kSurvey, {});
}

Result<Survey> Pbs::read_survey(const CommandOutput& output) const {
  const auto answer = read_queues_and_nodes(settings_, output);
  if (!answer) return answer.error();
  Survey survey;
  const Who who = who_asked(answer->things);
  for (const Record& record : answer->things) {
    if (!after(record.head, "Server:").empty()) survey.limits = limits_of(record, who);
    const std::string name = after(record.head, "Queue:");
    if (name.empty()) continue;
    const bool is_route = record.value("queue_type") == "Route";
    SurveyedPartition partition =
        is_route ? routing(record, name, *answer, who) : surveyed(record, name, answer->nodes, who);
    if (record.value("from_route_only") == "True" && partition.is_open) {
      partition.is_open = false;
      partition.why_closed = "reached by routing queues alone";
    }
    survey.partitions.push_back(std::move(partition));
  }
  if (survey.partitions.empty()) return no_offers("qstat named none");
  return survey;
}

}  // namespace hpcbatch::pbs
