// `backup`: a copy of the store, made by the engine that uses it.
#include "cli/process/exit.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

namespace hpcbatch {
namespace {

// A large store on a slow disk takes its time, and the engine works on meanwhile.
constexpr std::chrono::hours kLongestCopy{24};

}  // namespace

int back_up(const BackupCommand& command, const Session& session) {
  EngineClient client = session.client();
  const boost::json::object answer =
      client.post("/v1/engine/backup", {{"file", command.file}}, kLongestCopy);
  if (command.json)
    print_json(answer);
  else
    print("the store was copied to " + one_line(command.file) + "\n");
  return kExitDone;
}

}  // namespace hpcbatch
