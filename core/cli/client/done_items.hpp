// Which items have ended well in submissions that there are.
#pragma once

#include "cli/client/engine_client.hpp"

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch {

struct DoneItems {
  std::string submissions;  ///< their ids, as they are told
  /// How often an item has ended well, by `same_item`.
  std::unordered_map<std::string, std::size_t> times;
};

/// Throws CommandError where there is no such submission, and where it has no items.
DoneItems done_items(EngineClient& client, const std::vector<std::string>& submissions);

}  // namespace hpcbatch
