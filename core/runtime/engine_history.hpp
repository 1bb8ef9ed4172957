// The engine's part of a history, in a file: each record is written when it is as sure as its
// promise needs it.  Only where HPCBATCH_HISTORY names a folder.
#pragma once

#include "engine/history_of.hpp"
#include "loop/writer.hpp"
#include "wire/history.hpp"

#include <memory>
#include <string>

namespace hpcbatch {

class EngineHistory {
 public:
  /// Nothing where no history is asked for.
  static std::unique_ptr<EngineHistory> open(Writer& writer, const Snapshot& snapshot,
                                             const std::vector<Site>& sites);
  EngineHistory(const std::string& folder, Writer& writer, std::uint64_t engine_start);

  const std::string& folder() const { return folder_; }
  /// The same, and records of each that is taken.
  LiveArrays noting(LiveArrays live_arrays);
  void add(std::vector<Noted> noted);

 private:
  std::string folder_;
  Writer& writer_;
  std::shared_ptr<const wire::HistoryFile> file_;
};

}  // namespace hpcbatch
