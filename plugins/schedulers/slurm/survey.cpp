#include "answer_lines.hpp"
#include "slurm.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <sstream>
#include <utility>

namespace hpcbatch::slurm {
namespace {

/// Only the first must succeed: the second adds limits of partitions, the others, which only a
/// cluster with accounting answers, those of the user.
constexpr const char* kSurvey = R"sh(
sinfo --all --noheader --exact '--format=hb|%P|%a|%D|%c|%m|%l|%G' || exit
scontrol --all --oneliner show partition 2>/dev/null
cluster=$(scontrol show config 2>/dev/null | sed -n 's/^ClusterName *= *//p')
sacctmgr --noheader --parsable2 show assoc "user=$(id -un)" "cluster=$cluster" format=partition,qos,defaultqos,maxjobs,maxsubmit 2>/dev/null | sed 's/^/hbassoc|/'
sacctmgr --noheader --parsable2 show qos format=name,maxjobspu,maxsubmitpu 2>/dev/null | sed 's/^/hbqos|/'
:
)sh";

/// The number at the beginning; sinfo writes "4+" for "4 and more".
unsigned long leading_number(const std::string& text) {
  unsigned long number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<unsigned long>(c - '0');
  }
  return number;
}

/// Of nodes that differ the most.
void add_gpus(const std::string& gres, std::map<std::string, std::uint32_t>& gpus) {
  for (const auto& [kind, count] : gpus_in_gres(gres)) {
    auto& most = gpus[kind];
    most = std::max(most, static_cast<std::uint32_t>(std::min(count, 1e6)));
  }
}

/// Nothing for "", UNLIMITED, N/A and the like.
std::optional<std::uint32_t> count(const std::string& text) {
  if (text.empty() || text.size() > 9 ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(text));
}

void lower(std::optional<std::uint32_t>& limit, const std::optional<std::uint32_t>& other) {
  if (other) limit = limit ? std::min(*limit, *other) : *other;
}

void lower(JobLimits& limits, const JobLimits& other) {
  lower(limits.running, other.running);
  lower(limits.all, other.all);
}

/// One line of the user's associations.
struct Association {
  std::string partition;
  std::string qos;  ///< that a batch job gets which names none; empty: nobody can tell
  JobLimits limits;
};

/// One line of `scontrol show partition`.
struct PartitionFacts {
  std::string qos;
  std::optional<std::uint32_t> cpus;    ///< most of one node
  std::optional<std::uint32_t> memory;  ///< in MB, most of one node
};

struct Answer {
  Survey survey;
  std::map<std::string, PartitionFacts> facts;
  std::vector<Association> associations;
  std::map<std::string, JobLimits> qos;
};

void add_nodes(const std::vector<std::string>& parts, Survey& survey) {
  std::string name = parts[1];
  if (name.ends_with('*')) name.pop_back();  // the default partition
  auto& all = survey.partitions;
  auto partition =
      std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == name; });
  if (partition == all.end()) {
    partition = all.insert(all.end(), SurveyedPartition{});
    partition->name = name;
  }
  partition->is_open = parts[2] == "up";
  if (!partition->is_open) partition->why_closed = parts[2];
  partition->walltime = slurm_time(parts[6]);
  NodeKind kind{.nodes = static_cast<std::uint32_t>(leading_number(parts[3])),
                .cpus = static_cast<double>(leading_number(parts[4])),
                .memory = static_cast<std::uint64_t>(leading_number(parts[5])) << 20,
                .gpus = {}};
  add_gpus(parts[7], kind.gpus);
  if (kind.nodes == 0) return;  // a partition without nodes has a line too
  // Kinds that differ in what is none of ours are one.
  const auto same =
      std::find_if(partition->kinds.begin(), partition->kinds.end(), [&](const auto& k) {
        return k.cpus == kind.cpus && k.memory == kind.memory && k.gpus == kind.gpus;
      });
  if (same == partition->kinds.end()) {
    partition->kinds.push_back(std::move(kind));
  } else {
    same->nodes += kind.nodes;
  }
}

void add_facts(const std::string& line, Answer& answer) {
  std::string name;
  PartitionFacts facts;
  for (const std::string& word : split(line, ' ')) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (key == "PartitionName") name = value;
    if (key == "QoS" && value != "N/A") facts.qos = value;
    if (key == "MaxCPUsPerNode") facts.cpus = count(value);
    if (key == "MaxMemPerNode") facts.memory = count(value);
  }
  if (!name.empty()) answer.facts[name] = facts;
}

/// The QOS of a batch job that names none: the default one, else the only one.
std::string qos_of(const std::string& list, const std::string& chosen) {
  return !chosen.empty() ? chosen : list.find(',') == std::string::npos ? list : "";
}

void apply(const PartitionFacts& facts, const std::map<std::string, JobLimits>& qos,
           SurveyedPartition& partition) {
  for (NodeKind& kind : partition.kinds) {
    if (facts.cpus) kind.cpus = std::min(kind.cpus, static_cast<double>(*facts.cpus));
    if (facts.memory && *facts.memory > 0)
      kind.memory = std::min(kind.memory, std::uint64_t{*facts.memory} << 20);
  }
  if (const auto own = qos.find(facts.qos); own != qos.end()) lower(partition.limits, own->second);
}

/// Of several accounts the one that grants most counts: it can be chosen with an option.
JobLimits most_of(const std::vector<JobLimits>& all) {
  JobLimits most = all.front();
  for (const JobLimits& one : all) {
    most.running = most.running && one.running
                       ? std::optional(std::max(*most.running, *one.running))
                       : std::nullopt;
    most.all = most.all && one.all ? std::optional(std::max(*most.all, *one.all)) : std::nullopt;
  }
  return most;
}

void finish(Answer& answer) {
  std::map<std::string, std::vector<JobLimits>> by_partition;
  for (Association& association : answer.associations) {
    if (const auto own = answer.qos.find(association.qos); own != answer.qos.end())
      lower(association.limits, own->second);
    by_partition[association.partition].push_back(association.limits);
  }
  if (const auto everywhere = by_partition.find(""); everywhere != by_partition.end())
    answer.survey.limits = most_of(everywhere->second);
  for (SurveyedPartition& partition : answer.survey.partitions) {
    if (const auto facts = answer.facts.find(partition.name); facts != answer.facts.end())
      apply(facts->second, answer.qos, partition);
    if (const auto own = by_partition.find(partition.name); own != by_partition.end())
      lower(partition.limits, most_of(own->second));
  }
}

}  // namespace

CommandLine Slurm::survey() const {
  return {.argv = {"sh", "-c", kSurvey}, .environment = {}, .input = {}};
}

Result<Survey> Slurm::read_survey(const CommandOutput& output) const {
  const auto distrust = [](const std::string& why) {
    return Error{Error::Kind::Transient, "cannot list the partitions of SLURM: " + why};
  };
  if (output.timed_out) return distrust("sinfo gave no answer in time");
  if (output.exit_code != 0) return distrust(one_line(output.standard_error));
  Answer answer;
  std::istringstream lines(output.standard_output);
  for (std::string line; std::getline(lines, line);) {
    const auto parts = split(line, '|');
    if (parts.size() == 8 && parts[0] == "hb") {
      add_nodes(parts, answer.survey);
    } else if (line.starts_with("PartitionName=")) {
      add_facts(line, answer);
    } else if (parts.size() == 6 && parts[0] == "hbassoc") {
      answer.associations.push_back(
          {parts[1], qos_of(parts[2], parts[3]), {count(parts[4]), count(parts[5])}});
    } else if (parts.size() == 4 && parts[0] == "hbqos") {
      answer.qos[parts[1]] = {count(parts[2]), count(parts[3])};
    }
  }
  if (answer.survey.partitions.empty()) return distrust("sinfo named none");
  finish(answer);
  return std::move(answer.survey);
}

}  // namespace hpcbatch::slurm
