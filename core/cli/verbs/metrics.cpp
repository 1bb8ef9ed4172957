// `metrics`: what monitoring systems keep, printed once.
#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/verbs/verbs.hpp"

namespace hpcbatch {

int perform(const MetricsCommand&, const Session& session) {
  EngineClient client = session.client();
  const Answer answer = client.http().request("GET", "/v1/metrics", "", EngineClient::kAnswerTime);
  // Tells what is wrong in the words of all verbs.
  if (answer.outcome != Exchange::Answered || answer.status != 200) client.object_of(answer);
  print(answer.body);
  return kExitDone;
}

}  // namespace hpcbatch
