// Time as the pilot counts it.
#pragma once

#include <chrono>

namespace hpcbatch::pilot {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

}  // namespace hpcbatch::pilot
