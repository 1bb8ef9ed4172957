// Leases on their way to a pilot: saved, read with their recipes on the store's lane, sent.
#pragma once

#include "engine/engine.hpp"
#include "loop/writer.hpp"
#include "runtime/pilot_links.hpp"
#include "runtime/staging_of_tasks.hpp"
#include "sites/site_client.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace hpcbatch {

/// On the loop's thread.
class LeaseSender {
 public:
  /// All that is named outlives this.
  struct Dependencies {
    Writer& writer;
    const std::unique_ptr<Engine>& engine;
    const std::map<std::string, std::unique_ptr<SiteClient>>& sites;
    StagingOfTasks& staging;
    PilotLinks& links;
    std::function<std::string(const PilotId&)> site_of;
  };
  explicit LeaseSender(Dependencies around) : dependencies_(std::move(around)) {}

  void send(const SendLeases& action);

 private:
  Dependencies dependencies_;
};

}  // namespace hpcbatch
