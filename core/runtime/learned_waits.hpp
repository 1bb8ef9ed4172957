// A model of a site's waits, where one was learned, and what it tells of the queue as it is.
#pragma once

#include "foresight/learned/wait_model.hpp"
#include "model/ids.hpp"
#include "plugin_host/plugin_host.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace hpcbatch {

/// One thread, which blocks while it reads the file.
class LearnedWaits {
 public:
  struct Asked {
    std::string partition;  ///< empty: the default
    double cpus{1}, gpus{0};
    foresight::Seconds limit{0};
  };
  LearnedWaits(const PluginHost& plugins, std::string file)
      : plugins_(plugins), file_(std::move(file)) {}

  /// Takes the file where it is another than last time.  `ours`: names of allocations that
  /// have not ended; their user is who asks.
  void see(const WatchedQueue& queue, const WatchedRoom& room, const std::set<std::string>& ours,
           foresight::Seconds now);
  /// Of an allocation that is asked for then; none where there is no model.
  std::vector<foresight::Seconds> waits(const Asked& asked);
  /// Of the model; all nought where there is none.
  foresight::WaitModelFacts facts() const {
    return model_ ? model_->facts() : foresight::WaitModelFacts{};
  }
  std::size_t learned_from() const { return model_ ? model_->facts().waits : 0; }
  /// One sentence where there is a file that cannot be used, or a model that has no answer.
  const std::string& trouble() const { return trouble_; }

 private:
  void read_file();
  void set_trouble(std::string_view why);

  /// Its own: a thread that is left behind may use it when all else is gone.
  PluginHost plugins_;
  std::string file_;
  std::optional<struct ::stat> read_;
  std::unique_ptr<foresight::WaitModel> model_;
  std::string trouble_;

  foresight::Numbers partitions_;
  std::string default_partition_;
  std::vector<foresight::PresentJob> present_;
  std::uint32_t user_{0};
  foresight::Seconds now_{0};
};

// Makes a site's model of waits anew, once enough time has passed since those that it has learned from:
// `hpcbatch waits train` again, in a process of lowest priority.

/// Whether a model of waits of that time is to be made anew: a tenth of it has passed since, and a day
/// at least.
bool is_due(foresight::Seconds from, foresight::Seconds until, foresight::Seconds now);

/// On the loop's thread.
class ModelRenewal {
 public:
  explicit ModelRenewal(std::string home) : home_(std::move(home)) {}

  /// To be told after each look.  Tries at most once a day, also where it fails, and one site at a time.
  void consider(const std::string& site, const foresight::WaitModelFacts& facts, Time now);

 private:
  bool is_running();

  std::string home_;
  pid_t pid_{-1};
};

}  // namespace hpcbatch
