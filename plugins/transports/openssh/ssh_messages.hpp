// What the program ssh says when it fails, in the words of all our transports.  Pure.
#pragma once

#include "hpcbatch/result.hpp"

#include <string>

namespace hpcbatch {

struct WhoAndHow {
  std::string target;       ///< USER@HOST or HOST
  std::string by_hand;      ///< logs in once, at a terminal
  std::string open_master;  ///< opens the connection that is then shared, at a terminal
};
Error program_error(const WhoAndHow& who, const std::string& standard_error);

/// Whether ssh's last word is that a connection which stood has gone.
bool line_was_lost(const std::string& said);

}  // namespace hpcbatch
