// What a PBS offers: its queues and nodes, and how much of that one user may have.
#pragma once

#include "dialect.hpp"
#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/survey.hpp"
#include "records.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs {

// What qstat and pbsnodes say of queues and nodes: what they offer, and how much of that one user may
// have.

struct Node {
  std::string queue;  ///< the only one that may use it; empty: all may
  double cpus{0};
  std::uint64_t memory{0};
  std::map<std::string, std::uint32_t> gpus;
};

struct QueuesAndNodes {
  std::vector<Record> things;  ///< queues; server and asker too where they were asked for
  std::vector<Node> nodes;
};

/// Of an answer whose parts stand before "hbnodes" and between that and "hbend".
Result<QueuesAndNodes> read_queues_and_nodes(const Settings& settings, const CommandOutput& output);

Error no_offers(const std::string& why);

/// In a list with commas or blanks.
bool has_word(std::string_view list, std::string_view word);

}  // namespace hpcbatch::pbs
