#include "offers.hpp"

#include "dialect.hpp"
#include "records.hpp"

#include <algorithm>

namespace hpcbatch::pbs {
namespace {

/// Not every user may ask for the nodes; then the queues are offered without them.
constexpr const char* kListQueues = R"sh(
queues=$(qstat -Q -f) || exit
printf '%s\nhbnodes\n' "$queues"
pbsnodes -a 2>/dev/null
echo hbend
)sh";

/// With the server, which may have limits of its own.
constexpr const char* kSurvey = R"sh(
queues=$(qstat -Q -f) || exit
printf '%s\n\n' "$queues"
qstat -B -f 2>/dev/null
printf '\nhbnodes\n'
pbsnodes -a 2>/dev/null
echo hbend
)sh";

struct Node {
  std::string queue;  ///< the only one that may use it; empty: all may
  double cpus{0};
  std::uint64_t memory{0};
  std::map<std::string, std::uint32_t> gpus;
};

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

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto end = std::min(list.find_first_of(", "), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
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

Offer offer_of(const Record& queue, const std::string& name, const std::vector<Node>& nodes) {
  Offer offer{.partition = name};
  offer.walltime = read_duration(queue.value("resources_max.walltime"));
  for (const Node& node : nodes) {
    if (!node.queue.empty() && node.queue != name) continue;
    ++offer.nodes;
    offer.cpus = std::max(offer.cpus, node.cpus);
    offer.memory = std::max(offer.memory, node.memory);
    for (const auto& [kind, count] : node.gpus) {
      auto& most = offer.gpus[kind];
      most = std::max(most, count);
    }
  }
  return offer;
}

Error no_offers(const std::string& why) {
  return {Error::Kind::Transient, "cannot list the queues of PBS: " + why};
}

struct Answer {
  std::vector<Record> things;  ///< queues, the server too where it was asked for
  std::vector<Node> nodes;
};

Result<Answer> read_answer(const Settings& settings, const CommandOutput& output) {
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
  Answer answer{read_records(text.substr(0, middle + 1)), {}};
  for (const Record& record : read_records(text.substr(middle + 9, end + 1 - (middle + 9)))) {
    if (!record.attributes.empty()) answer.nodes.push_back(read_node(settings, record));
  }
  return answer;
}

// --- the survey --------------------------------------------------------------------------------

/// Of "[u:PBS_GENERIC=10],[g:physics=20]" what any user may have; Torque writes a plain number.
std::optional<std::uint32_t> limit_of(std::string_view written) {
  constexpr std::string_view kAnyUser = "u:PBS_GENERIC=";
  if (const auto at = written.find(kAnyUser); at != std::string_view::npos) {
    written.remove_prefix(at + kAnyUser.size());
    written = written.substr(0, written.find_first_not_of("0123456789"));
  }
  const auto number = read_number(written);
  if (!number || *number < 0 || *number > 1'000'000'000) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

JobLimits limits_of(const Record& thing) {
  // What stands for all users together, also as a plain number, is no limit of one.
  const auto of_user = [&](const char* name, const char* older) {
    const std::string_view value = thing.value(name);
    return value.find("u:PBS_GENERIC=") != std::string_view::npos ? limit_of(value)
                                                                  : limit_of(thing.value(older));
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

SurveyedPartition surveyed(const Record& queue, const std::string& name,
                           const std::vector<Node>& nodes) {
  SurveyedPartition partition;
  partition.name = name;
  partition.walltime = read_duration(queue.value("resources_max.walltime"));
  partition.limits = limits_of(queue);
  if (queue.value("enabled") == "False") partition.why_closed = "not enabled";
  if (queue.value("started") == "False") partition.why_closed = "not started";
  // What it passes on to is listed itself.
  if (queue.value("queue_type") == "Route") partition.why_closed = "a routing queue";
  partition.is_open = partition.why_closed.empty();
  for (const Node& node : nodes) {
    if (node.queue.empty() || node.queue == name) add_kind(node, partition.kinds);
  }
  // Of one batch job; with one node it is the node's.
  const auto cpus = read_number(queue.value("resources_max.ncpus"));
  const auto memory = read_size(queue.value("resources_max.mem"));
  for (NodeKind& kind : partition.kinds) {
    if (cpus && *cpus > 0) kind.cpus = std::min(kind.cpus, static_cast<double>(*cpus));
    if (memory && *memory > 0) kind.memory = std::min(kind.memory, *memory);
  }
  return partition;
}

}  // namespace

CommandLine list_queues(const std::string& dialect) {
  return in_dialect(dialect, kListQueues, {});
}

Result<std::vector<Offer>> read_queues(const Settings& settings, const CommandOutput& output) {
  const auto answer = read_answer(settings, output);
  if (!answer) return answer.error();
  std::vector<Offer> offers;
  for (const Record& record : answer->things) {
    const std::string name = after(record.head, "Queue:");
    if (!name.empty()) offers.push_back(offer_of(record, name, answer->nodes));
  }
  if (offers.empty()) return no_offers("qstat named none");
  return offers;
}

CommandLine survey_queues(const std::string& dialect) {
  return in_dialect(dialect, kSurvey, {});
}

Result<Survey> read_survey(const Settings& settings, const CommandOutput& output) {
  const auto answer = read_answer(settings, output);
  if (!answer) return answer.error();
  Survey survey;
  for (const Record& record : answer->things) {
    if (!after(record.head, "Server:").empty()) survey.limits = limits_of(record);
    const std::string name = after(record.head, "Queue:");
    if (!name.empty()) survey.partitions.push_back(surveyed(record, name, answer->nodes));
  }
  if (survey.partitions.empty()) return no_offers("qstat named none");
  return survey;
}

}  // namespace hpcbatch::pbs
