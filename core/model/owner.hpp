// Which engine owns a state directory, as its lock file says it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

struct Owner {
  std::string host;
  std::string boot_id;
  int process{0};
  long long process_start{0};  ///< field 22 of /proc/PID/stat
  long long heartbeat{0};      ///< seconds since 1970, by that host's clock
  bool ends_when_idle{true};
  std::string config;  ///< the file that it read; empty: none
};

/// Renewed once a minute; an owner on another host whose heartbeat is older is gone.
inline constexpr long long kHeartbeatAge = 600;

/// More bytes than this no such file has.
inline constexpr std::size_t kLongestOwner = std::size_t{64} << 10;

std::string to_text(const Owner& owner);
/// No value for an empty or damaged file: nobody owns it.
std::optional<Owner> parse_owner(std::string_view text);

}  // namespace hpcbatch
