// What is done next about a data set that was cut into parts: parts that are too large for time or
// memory are cut in two, and when all are done their results are merged in order, many at once.
// Nothing is asked, started or read here.
#pragma once

#include "split/parts.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::split {

enum class PartEnd {
  Done,
  TooLarge,  ///< for its time, memory or disk
  Failed     ///< or cancelled
};

/// Results become one.
struct Merge {
  std::string name;
  std::vector<std::string> of;  ///< parts, or merges before it, in their order; one at least
  bool is_last{false};          ///< its result is that of the whole
};

class SplitPlanner {
 public:
  struct RunParts {
    std::vector<Part> parts;
  };
  struct RunMerges {
    std::vector<Merge> merges;
  };
  /// Nothing more is to be done.
  struct Over {
    std::vector<std::string> failed;  ///< parts or merges, in order; none: all went well
  };
  using Action = std::variant<RunParts, RunMerges, Over>;

  /// `at_once`: results that one merge takes, two at least; 0: nothing is merged.
  SplitPlanner(std::vector<Part> parts, std::size_t at_once);

  /// A part or a merge, once.
  void ended(const std::string& name, PartEnd end);
  std::vector<Action> decide();

  struct Counts {
    std::size_t parts{0}, done{0}, failed{0}, halved{0};
    std::size_t merges{0}, merged{0};
  };
  const Counts& counts() const { return counts_; }

 private:
  enum class State { Runs, Done, Failed };
  struct Entry {
    Part part;
    State state{State::Runs};
  };

  void part_ended(std::map<std::string, Entry>::iterator at, PartEnd end);
  void next_level();

  std::size_t at_once_;
  std::map<std::string, Entry> parts_;
  std::map<std::string, State> merges_;  // of the level that runs
  unsigned level_{0};
  std::vector<Part> to_run_;
  std::vector<Merge> to_merge_;
  bool is_over_{false};
  bool told_over_{false};
  Counts counts_;
};

}  // namespace hpcbatch::split
