// What is done next about a data set that was cut into parts: parts that are too large for time or
// memory are cut in two, and when all are done their results are merged in order, many at once.
// Nothing is asked, started or read here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hpcbatch::split {

// How a data set is cut into parts, each the work of one task.

/// Neighbours of the data set.
struct Part {
  std::string name;  ///< in the order of their names parts are in the order of the data set
  std::size_t first{0};
  std::size_t count{0};
  friend bool operator==(const Part&, const Part&) = default;
};

struct PartBounds {
  std::size_t files{1};    ///< of a part at most, one at least
  std::uint64_t bytes{0};  ///< of a part at most, but for a file that is larger alone; 0: no bound
};

/// Parts of files with these sizes, in their order.
std::vector<Part> cut_into_parts(const std::vector<std::uint64_t>& sizes, const PartBounds& bounds);

/// The same in two; only of a part of two files or more.
std::pair<Part, Part> halves_of(const Part& part);

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
