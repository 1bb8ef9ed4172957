#include "runtime/engine_history.hpp"

#include <cstdlib>

namespace hpcbatch {

std::unique_ptr<EngineHistory> EngineHistory::open(Writer& writer, const Snapshot& snapshot,
                                                   const std::vector<Site>& sites) {
  const char* folder = std::getenv("HPCBATCH_HISTORY");
  if (!folder || *folder == '\0') return nullptr;
  auto history = std::make_unique<EngineHistory>(folder, writer, snapshot.engine_start);
  history->add(noted_at_start(snapshot, sites));
  return history;
}

EngineHistory::EngineHistory(const std::string& folder, Writer& writer, std::uint64_t engine_start)
    : folder_(folder),
      writer_(writer),
      file_(std::make_shared<wire::HistoryFile>(folder, "engine",
                                                "engine/" + std::to_string(engine_start))) {}

LiveArrays EngineHistory::noting(LiveArrays live_arrays) {
  return [this, next = std::move(live_arrays)] {
    const LiveArray* live = next();
    if (live) add({noted_restored(*live)});
    return live;
  };
}

void EngineHistory::add(std::vector<Noted> noted) {
  for (Noted& one : noted) {
    const auto when = one.when;
    auto write = [file = file_, one = std::move(one)] { file->add(one.what, one.facts); };
    switch (when) {
      case Noted::When::Now:
        write();
        break;
      case Noted::When::Written:
        writer_.after_written({}, std::move(write));
        break;
      case Noted::When::Durable:
        writer_.after_durable(std::move(write), false);
        break;
    }
  }
}

}  // namespace hpcbatch
