// `node-run`: inside a task over several nodes, a command on each of them.  The pilot's program does
// it, which is on every node.
#include "cli/process/process.hpp"
#include "cli/verbs/verbs.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

namespace hpcbatch {

void become_node_run(const std::vector<std::string>& words) {
  const char* program = std::getenv("HPCBATCH_NODE_RUN");
  if (program == nullptr) return;
  std::vector<std::string> own = words;
  own.front() = program;
  std::vector<char*> argv;
  argv.reserve(own.size() + 1);
  for (std::string& word : own) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program, argv.data());
}

int no_nodes_here(const NodeRunCommand&, const Session&) {
  const char* program = std::getenv("HPCBATCH_NODE_RUN");
  throw CommandError(
      kExitUsage, program == nullptr
                      ? std::string("this is no task over several nodes: start one with 'hpcbatch "
                                    "run --nodes 2 -- hpcbatch node-run CMD'")
                      : "cannot run the pilot's program " + std::string(program) +
                            ", which starts commands on other nodes");
}

}  // namespace hpcbatch
