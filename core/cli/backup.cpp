// `backup`: a copy of the store, made by the engine that uses it.
#include "cli/exit.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "cli/values.hpp"

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
