// The engine's part of a history (wire/history.hpp): what it accepted, leased, was told and
// published, each recorded when it is as sure as its promise needs it.  Only where HPCBATCH_HISTORY
// names a folder.
#pragma once

#include "engine/engine.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "model/snapshot.hpp"
#include "runtime/writer.hpp"
#include "wire/history.hpp"

#include <memory>
#include <string>

namespace hpcbatch {

class EngineHistory {
 public:
  /// Nothing where no history is asked for.
  static std::unique_ptr<EngineHistory> open(Writer& writer, const Snapshot& snapshot,
                                             const std::vector<Site>& sites);
  EngineHistory(const std::string& folder, Writer& writer, const Snapshot& snapshot,
                const std::vector<Site>& sites);

  const std::string& folder() const { return folder_; }
  /// What is known before an action is done, and after it was handed to the store.
  void before(const Event& event, const Action& action);
  void after(const Action& action);
  /// The engine ends in order: what of its tasks has not ended, and why.
  void end(const Engine& engine, Time now);

 private:
  using Facts = std::vector<std::pair<std::string, std::string>>;
  void when_written(std::string what, Facts facts);
  void when_durable(std::string what, Facts facts);

  std::string folder_;
  Writer& writer_;
  std::shared_ptr<const wire::HistoryFile> file_;
};

}  // namespace hpcbatch
