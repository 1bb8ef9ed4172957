// Tasks that have succeeded and whose outputs wait to be published, or are being published.
#pragma once

#include "attempt.hpp"
#include "chore.hpp"
#include "removals.hpp"

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch::pilot {

class Publisher {
 public:
  using Done = std::function<void(const AttemptId&, wire::Result)>;

  /// `done` gets the last result of each that was published, or could not be.
  Publisher(Chores& chores, Removals& removals, Done done)
      : chores_(chores), removals_(removals), done_(std::move(done)) {}

  void add(const AttemptId& id, wire::Result result, std::string directory,
           std::vector<wire::Output> outputs);
  void publish(const AttemptId& id);
  /// Removes the outputs and forgets the task.
  void discard(const AttemptId& id);
  /// The result as it was when the task ended; null where it is not here.
  const wire::Result* find(const AttemptId& id) const;

 private:
  struct Waiting {
    wire::Result result;
    std::string directory;
    std::vector<wire::Output> outputs;
  };
  Chores& chores_;
  Removals& removals_;
  Done done_;
  std::unordered_map<AttemptId, Waiting, AttemptHash> waiting_;
};

}  // namespace hpcbatch::pilot
