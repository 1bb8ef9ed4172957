// What a history (docs/formats.md) says of the engine: from events and actions to records, without
// who recorded them and when.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// A record, and how sure it has to be before it is one.
struct Noted {
  enum class When : std::uint8_t { Now, Written, Durable };
  When when{When::Now};
  std::string what;
  std::vector<std::pair<std::string, std::string>> facts;
};

/// The sites that this engine may use; then what it finds in its store: the live arrays, the rest.
std::vector<Noted> noted_at_start(const Snapshot& snapshot, const std::vector<Site>& sites);
Noted noted_restored(const LiveArray& live);
std::vector<Noted> noted_restored(const Snapshot& snapshot);
/// Before the action is done, and after it was handed to the store.
std::vector<Noted> noted_before(const Event& event, const Action& action);
std::vector<Noted> noted_after(const Action& action);
/// The engine ends in order: what of its tasks has not ended, and why.
std::vector<Noted> noted_at_end(const Engine& engine, Time now);

}  // namespace hpcbatch
