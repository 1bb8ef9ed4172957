// What `hpcbatch sim` is told; `hpcbatch-sim` gets it as JSON, so that only that program pays for
// the library that runs it on all processors.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

struct SimCommand {
  std::string trace;  ///< file, gzip'ed or not; `-`: standard input
  std::string partition;
  std::optional<std::int64_t> nodes;  ///< without: as many as the trace had in use
  bool whole{false};                  ///< only the whole trace, no episodes
  std::vector<std::int64_t> pilot_nodes{1};
  std::int64_t pilot_time{172'800};          ///< seconds
  std::int64_t every{14'400};                ///< seconds between episodes
  std::optional<std::int64_t> since, until;  ///< of episodes; seconds since 1970, UTC
  std::string backfill{"conservative"};      ///< easy, none; of the cluster that plays
  std::optional<std::int64_t> model_nodes;   ///< what a look-ahead takes it for
  std::string model_backfill;                ///< empty: as the cluster's
  bool unknown_order{false};
  std::int64_t hide_each{0};
  double waiting_cost{19}, idle_cost{1};
  std::int64_t most_idle{6300};  ///< seconds
  bool json{false};
};

boost::json::object to_json(const SimCommand& command);
/// Throws where it is not what `to_json` has made.
SimCommand sim_command_of(const boost::json::value& value);

}  // namespace hpcbatch
