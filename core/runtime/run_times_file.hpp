// How long others' batch jobs have run at a site, in a file: what looks at a queue have learned
// outlives the engine's process.
#pragma once

#include "foresight/watch/queue_watch.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch
