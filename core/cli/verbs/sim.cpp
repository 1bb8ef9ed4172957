// `sim`: hands over to the program that replays traces.
#include "cli/parse/sim_command.hpp"
#include "cli/process/exit.hpp"
#include "cli/verbs/installation.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/serialize.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace hpcbatch {

int replay_trace(const SimCommand& command) {
  const std::string program =
      (std::filesystem::path(own_program()).parent_path() / "hpcbatch-sim").string();
  const std::string said = boost::json::serialize(to_json(command));
  ::execl(program.c_str(), "hpcbatch-sim", said.c_str(), static_cast<char*>(nullptr));
  throw CommandError(kExitUsage, "cannot run " + program + ": " + std::strerror(errno) +
                                     "; build or install hpcbatch completely");
}

}  // namespace hpcbatch
