#include "publisher.hpp"

#include "wire/outputs.hpp"

namespace hpcbatch::pilot {
namespace {

// What the process that publishes answers: nothing when all is done, else the failure, a line end
// and the message.
std::string to_answer(const std::optional<wire::OutputRefusal>& refusal) {
  return refusal ? refusal->failure + "\n" + refusal->message : std::string();
}

}  // namespace

void Publisher::add(const AttemptId& id, wire::Result result, std::string directory,
                    std::vector<wire::Output> outputs) {
  waiting_[id] = {std::move(result), std::move(directory), std::move(outputs)};
}

void Publisher::publish(const AttemptId& id) {
  const auto at = waiting_.find(id);
  if (at == waiting_.end()) return;
  chores_.start(
      [directory = at->second.directory, outputs = at->second.outputs] {
        return to_answer(wire::publish_outputs(directory, outputs));
      },
      "stage_out_failed\nthe process that moved the outputs died",
      [this, id](const std::string& answer) {
        const auto found = waiting_.find(id);
        if (found == waiting_.end()) return;
        wire::Result result = std::move(found->second.result);
        removals_.add(found->second.directory);
        waiting_.erase(found);
        result.set_outputs_staged(false);
        if (!answer.empty()) {
          const std::size_t end = answer.find('\n');
          result.set_bring_back(false);
          const bool has_failed = result.failure() != "ok";
          if (!has_failed) result.set_failure(answer.substr(0, end));
          const bool has_words = has_failed && !result.message().empty();
          result.set_message((has_words ? result.message() + "; " : "") + answer.substr(end + 1));
        }
        done_(id, std::move(result));
      });
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
