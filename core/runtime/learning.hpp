// Adds what has ended to the records of runs, a little at a time and beside the work.
#pragma once

#include "loop/asio.hpp"
#include "loop/writer.hpp"
#include "records/estimate.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace hpcbatch {

/// What kind of task those of an array are.
std::string kind_of_array(const store::ArrayRow& array);

/// On the loop's thread.
class Learning {
 public:
  /// All that is named outlives this.
  struct Dependencies {
    asio::io_context& loop;
    Writer& writer;
    std::function<bool()> is_stopped;  ///< the engine hears nothing more
  };
  explicit Learning(Dependencies around);

  /// Goes on by itself from then on.
  void begin() { learn(); }
  /// By kind, as the records were a few seconds ago; empty until somebody has wanted them.
  const records::Estimates& estimates() const { return estimates_; }
  /// From now on they are kept; `then` once they have been read.
  void want_estimates(std::function<void()> then);
  /// When all that has ended so far is in the records.
  void catch_up(std::function<void()> then);

 private:
  void learn();
  void learn_in(std::chrono::milliseconds time);
  void estimate(std::function<void()> then);

  Dependencies dependencies_;
  asio::steady_timer timer_;
  std::uint64_t learned_{0};  ///< tasks that had ended then
  bool are_wanted_{false}, are_there_{false};
  records::Estimates estimates_;
};

}  // namespace hpcbatch
