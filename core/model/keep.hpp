// A shape of which pilots are to be there until a time, whatever there is for them to do.
#pragma once

#include "model/time.hpp"

#include <cstdint>
#include <string>

namespace hpcbatch {

struct Keep {
  std::string site;
  std::string shape;
  std::uint32_t allocations{1};  ///< at once; 0: no more
  Time until{};
  Time since{};
  // Of this time, as far as an engine was there to see it:
  Duration missing{};  ///< in which one of them was not there
  Duration beyond{};   ///< in which one more of the shape was there than asked for
};

}  // namespace hpcbatch
