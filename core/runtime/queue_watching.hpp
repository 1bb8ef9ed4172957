// Looks at what others have in the queues, and plays on from there beside the loop's thread.
#pragma once

#include "foresight/watch/queue_watch.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "model/event.hpp"
#include "plugin_host/plugin_host.hpp"
#include "runtime/learned_waits.hpp"
#include "sites/site_client.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

// How long others' batch jobs have run at a site, in a file: what looks at a queue have learned
// outlives the engine's process.

/// One thread, which blocks.  What cannot be read or written is as if nothing had been learned.
class RunTimesFile {
 public:
  explicit RunTimesFile(std::string path) : path_(std::move(path)) {}

  /// The first time only.
  void load_into(foresight::QueueWatch& watch);
  void add(const std::vector<foresight::QueueWatch::Ended>& ended);

 private:
  std::string path_;
  bool is_loaded_{false};
  std::size_t lines_{0};
};

/// On the loop's thread.
class QueueWatching {
 public:
  using Answer = std::function<void(QueueForeseen)>;
  /// `home`: where models of waits are; each is read when its file changes.
  QueueWatching(asio::io_context& loop, const PluginHost& plugins, std::string home);

  /// Names of our allocations.
  struct Ours {
    std::set<std::string> queued;  ///< that wait there
    std::set<std::string> all;     ///< that have not ended
  };
  void look(SiteClient& site, Ours ours, Time now, Answer answer);

 private:
  struct Question {
    std::string site;
    std::vector<Shape> shapes;
    Ours ours;
    Time now{};
    bool asks_for_memory{true};
    bool retrains{true};
  };
  /// Of one site; used on the lane alone.
  struct Watch {
    foresight::QueueWatch queue;
    LearnedWaits learned;
    RunTimesFile run_times;
  };
  void foresee(Question question, SiteClient::QueueSeen seen, Answer answer);

  const PluginHost& plugins_;
  std::string home_;
  ModelRenewal renewal_;
  std::map<std::string, std::shared_ptr<Watch>> watches_;
  CallLane lane_;
};

}  // namespace hpcbatch
