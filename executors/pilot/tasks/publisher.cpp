#include "pilot/tasks/publisher.hpp"

#include "pilot/base/files.hpp"
#include "wire/outbox.hpp"
#include "wire/outputs.hpp"

#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

// What the process that publishes answers: nothing when all is done, else the failure, a line end
// and the message.
std::string to_answer(const std::optional<wire::OutputRefusal>& refusal) {
  return refusal ? std::string(to_string(refusal->failure)) + "\n" + refusal->message
                 : std::string();
}

/// Into a folder of the workspace that is this attempt's alone.  A workspace that is not there, as
/// where its file system is not mounted, is not made.
std::optional<wire::OutputRefusal> publish_to_be_fetched(const std::string& workspace,
                                                         const std::string& directory,
                                                         const std::vector<wire::Output>& outputs) {
  const std::string& first = outputs.front().destination();
  if (::access((workspace + "/work").c_str(), W_OK) != 0 ||
      !make_folders_above(first, workspace.size())) {
    return wire::OutputRefusal{Failure::WorkspaceLost,
                               "cannot make the folder of " + first + ": " + std::strerror(errno)};
  }
  auto refusal = wire::publish_outputs(directory, outputs);
  if (refusal) ::rmdir(first.substr(0, first.rfind('/')).c_str());
  return refusal;
}

}  // namespace

void Publisher::add(const AttemptId& id, wire::Result result, std::string directory,
                    std::vector<wire::Output> outputs) {
  waiting_[id] = {std::move(result), std::move(directory), std::move(outputs)};
}

void Publisher::publish(const AttemptId& id) {
  const auto at = waiting_.find(id);
  if (at == waiting_.end()) return;
  helpers_.start(
      [directory = at->second.directory, outputs = at->second.outputs, workspace = workspace_,
       is_fetched = at->second.result.stage_out()] {
        return to_answer(is_fetched ? publish_to_be_fetched(workspace, directory, outputs)
                                    : wire::publish_outputs(directory, outputs));
      },
      "stage_out_failed\nthe process that moved the outputs died",
      [this, id](const std::string& answer) {
        const auto found = waiting_.find(id);
        if (found == waiting_.end()) return;
        if (answer.starts_with(to_string(Failure::WorkspaceLost))) {
          found->second.stuck = answer;
          stuck_(answer.substr(answer.find('\n') + 1));
        } else {
          published(id, answer);
        }
      });
}

void Publisher::published(const AttemptId& id, const std::string& answer) {
  const auto at = waiting_.find(id);
  wire::Result result = std::move(at->second.result);
  removals_.add(at->second.directory);
  waiting_.erase(at);
  result.set_outputs_staged(false);
  if (!answer.empty()) {
    const std::size_t end = answer.find('\n');
    result.set_stage_out(false);
    result.clear_published();
    const bool has_failed = failure_of(result) != Failure::Ok;
    if (!has_failed) result.set_failure(answer.substr(0, end));
    const bool has_words = has_failed && !result.message().empty();
    result.set_message((has_words ? result.message() + "; " : "") + answer.substr(end + 1));
  }
  done_(id, std::move(result));
}

std::vector<AttemptId> Publisher::stuck() const {
  std::vector<AttemptId> all;
  for (const auto& [id, waiting] : waiting_) {
    if (!waiting.stuck.empty()) all.push_back(id);
  }
  return all;
}

void Publisher::try_again() {
  for (const AttemptId& id : stuck()) {
    waiting_.at(id).stuck.clear();
    publish(id);
  }
}

void Publisher::give_up() {
  for (const AttemptId& id : stuck()) published(id, std::string(waiting_.at(id).stuck));
}

void Publisher::discard(const AttemptId& id) {
  const auto at = waiting_.find(id);
  if (at == waiting_.end()) return;
  removals_.add(at->second.directory);
  waiting_.erase(at);
}

const wire::Result* Publisher::find(const AttemptId& id) const {
  const auto at = waiting_.find(id);
  return at == waiting_.end() ? nullptr : &at->second.result;
}

}  // namespace hpcbatch::pilot
