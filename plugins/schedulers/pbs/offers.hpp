// What the queues of a PBS offer.
#pragma once

#include "settings.hpp"

#include "hpcbatch/scheduler.hpp"

#include <vector>

namespace hpcbatch::pbs {

CommandLine list_queues(const std::string& dialect);
Result<std::vector<Offer>> read_queues(const Settings& settings, const CommandOutput& output);

}  // namespace hpcbatch::pbs
