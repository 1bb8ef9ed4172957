// Tasks that have succeeded and whose outputs wait to be published, or are being published.
#pragma once

#include "pilot/base/files.hpp"
#include "pilot/policy/attempt.hpp"

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch::pilot {

class Publisher {
 public:
  using Done = std::function<void(const AttemptId&, wire::Result)>;

  /// `done` gets the last result of each that was published, or could not be.
  /// Outputs that the workspace takes none of now stay; `stuck` hears why.
  Publisher(Helpers& helpers, Removals& removals, std::string workspace, Done done,
            std::function<void(const std::string& why)> stuck)
      : helpers_(helpers),
        removals_(removals),
        workspace_(std::move(workspace)),
        done_(std::move(done)),
        stuck_(std::move(stuck)) {}

  void add(const AttemptId& id, wire::Result result, std::string directory,
           std::vector<wire::Output> outputs);
  void publish(const AttemptId& id);
  /// Removes the outputs and forgets the task.
  void discard(const AttemptId& id);
  /// Those that wait for the workspace.
  std::vector<AttemptId> stuck() const;
  /// The workspace may take them now.
  void try_again();
  /// They are not to be had any more.
  void give_up();
  /// The result as it was when the task ended; null where it is not here.
  const wire::Result* find(const AttemptId& id) const;

 private:
  struct Waiting {
    wire::Result result;
    std::string directory;
    std::vector<wire::Output> outputs;
    std::string stuck;  // why the workspace took none of them; empty: that was not tried
  };
  void published(const AttemptId& id, const std::string& answer);

  Helpers& helpers_;
  Removals& removals_;
  std::string workspace_;
  Done done_;
  std::function<void(const std::string& why)> stuck_;
  std::unordered_map<AttemptId, Waiting, AttemptHash> waiting_;
};

}  // namespace hpcbatch::pilot
