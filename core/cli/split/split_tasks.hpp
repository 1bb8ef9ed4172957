// The tasks of a data set's parts and of the merges of their results.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"
#include "split/split_planner.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

/// What of a data set belongs to one part alone: a file, or some parameters of a tool.
struct DataUnit {
  std::string path;                               ///< absolute; empty: a piece of the recording
  std::map<std::string, std::string> parameters;  ///< of a piece
  std::uint64_t size{0};                          ///< bytes
};

/// How a tool's file says that it can be split (`GET /v1/tools/NAME`, `split`).
struct ToolSplit {
  std::string input, output;  ///< of the tool
  std::string cut, merge;     ///< tools; empty: none
};

struct SplitPlan {
  boost::json::object task;  ///< what all parts have in common
  std::vector<DataUnit> units;
  std::string recording;           ///< absolute; empty: none
  std::vector<std::string> reuse;  ///< absolute
  std::string folder;              ///< of the parts' results, absolute
  std::string result;              ///< absolute
  std::string merge;               ///< what a shell is given; empty: as the tool says
  ToolSplit tool;                  ///< empty: a command
  std::string name;                ///< of all of it
};

/// Where a part's or a merge's result lies.
std::string result_of(const SplitPlan& plan, const std::string& name);
/// The file that lists a part's files, for a command that has {list}.
std::string list_file_of(const SplitPlan& plan, const std::string& name);
/// What stands in it.
std::string list_text_of(const SplitPlan& plan, const split::Part& part);
bool wants_list(const SplitPlan& plan);

boost::json::object task_of_part(const SplitPlan& plan, const split::Part& part);
boost::json::object task_of_merge(const SplitPlan& plan, const split::Merge& merge);
/// Of the tool's means: the pieces of the recording, as a table.
boost::json::object task_of_cut(const SplitPlan& plan, std::uint32_t pieces, double seconds);

/// What `task_of_cut` wrote: a line of names, then a line for each piece, tabs between.  Throws
/// CommandError.
std::vector<DataUnit> read_pieces(const std::string& text, const std::string& file);

/// Whoever takes a split up again must mean the same one: all that decides its results, of which
/// two that differ have different numbers.
std::uint64_t fingerprint_of(const std::vector<std::string>& words);

// The folder of a split's parts: what is there of them, and by which key the split goes on.

class SplitFolder {
 public:
  /// Makes the folder, or takes up the split that was begun there. `words` are all that decides the
  /// results: another split is refused.  Throws CommandError.
  SplitFolder(std::string path, const std::vector<std::string>& words);

  /// Of this split and no other.
  const std::string& key() const { return key_; }
  /// What of it is a split's own; the folder too, where nothing else is in it.
  void remove() const;

 private:
  std::string path_;
  std::string key_;
};

// `split`: a data set as parts, one task each, and their merged result.

/// Returns the exit code; throws CommandError or InterruptedByUser.
int perform(const SplitCommand& command, const Session& session);

}  // namespace hpcbatch
