#include "offers.hpp"

#include "dialect.hpp"
#include "queues.hpp"

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

}  // namespace

CommandLine list_queues(const std::string& dialect) {
  return in_dialect(dialect, kListQueues, {});
}

Result<std::vector<Offer>> read_queues(const Settings& settings, const CommandOutput& output) {
  const auto answer = read_queues_and_nodes(settings, output);
  if (!answer) return answer.error();
  std::vector<Offer> offers;
  for (const Record& record : answer->things) {
    const std::string name = after(record.head, "Queue:");
    if (!name.empty()) offers.push_back(offer_of(record, name, answer->nodes));
  }
  if (offers.empty()) return no_offers("qstat named none");
  return offers;
}

}  // namespace hpcbatch::pbs
