#include "queues.hpp"

#include "dialect.hpp"

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

}  // namespace hpcbatch::pbs
