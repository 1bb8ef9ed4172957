// Batch jobs of the past as text: a line each, on its way from the engine to who learns from them.
#pragma once

#include "hpcbatch/queue_history.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::foresight {

std::string past_text(const std::vector<PastJob>& jobs);
/// Throws std::invalid_argument with one sentence where it is not what `past_text` makes.
std::vector<PastJob> past_jobs(std::string_view text);

}  // namespace hpcbatch::foresight
