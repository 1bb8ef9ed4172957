// `sim`: hands over to the program that replays traces.
#include "cli/parse/sim_command.hpp"
#include "cli/verbs/part_program.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/serialize.hpp>

namespace hpcbatch {

int replay_trace(const SimCommand& command, const Session& session) {
  become_part("hpcbatch-sim", {boost::json::serialize(to_json(command))}, session.interrupt);
}

}  // namespace hpcbatch
