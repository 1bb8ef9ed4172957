// `node-run`: inside a task, a command on each of its nodes.  The pilot's program does it, which is on
// every node; a task of one node may have only what is installed here.
#include "cli/process/process.hpp"
#include "cli/verbs/verbs.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace hpcbatch {

void become_node_run(const std::vector<std::string>& words) {
  std::vector<std::string> own = words;
  std::error_code ignored;
  const auto bin = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (const char* told = std::getenv("HPCBATCH_NODE_RUN"))
    own.front() = told;
  else if (std::getenv("HPCBATCH_TASK_ID") != nullptr)
    own.insert(own.begin(), (bin / "hpcbatch-pilot").string());
  else
    return;
  std::vector<char*> argv;
  argv.reserve(own.size() + 1);
  for (std::string& word : own) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
}

int perform(const NodeRunCommand&, const Session&) {
  const char* program = std::getenv("HPCBATCH_NODE_RUN");
  throw CommandError(kExitUsage,
                     program == nullptr
                         ? std::string("this is no task, or its pilot's program is not beside this "
                                       "one: start one with 'hpcbatch run --nodes 2 -- hpcbatch "
                                       "node-run CMD'")
                         : "cannot run the pilot's program " + std::string(program) +
                               ", which starts commands on other nodes");
}

}  // namespace hpcbatch
