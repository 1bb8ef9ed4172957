// Nodes as far as batch jobs wait for them: how many of their cpus are there, and how many busy.
#pragma once

#include "records.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs {

struct ComputeNode {
  std::string name;
  bool is_up{false};
  double cpus{0};
  double busy_cpus{0};
  /// One batch job has all of it, however little it asked for.
  bool is_taken_whole{false};
  /// What does not say otherwise shares it with nothing.
  bool is_given_whole{false};
  Record record;
};

/// Of "0-3,7" or "2", as slots of a node are told: how many they are.
double slots_in(std::string_view ranges);

/// Of what `pbsnodes -a` printed.
std::vector<ComputeNode> compute_nodes(const std::string& text);

/// Of `nodes`, those that are up and on which batch jobs of this queue may run.
std::vector<const ComputeNode*> nodes_of_queue(const Record& queue, const std::string& name,
                                               const std::vector<ComputeNode>& nodes);

}  // namespace hpcbatch::pbs
