// Whether a model is good enough to be used.
#pragma once

#include "foresight/job.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::foresight {

/// What speaks against a model that has told these waits (seconds) of jobs that it has not seen, in
/// one sentence: there are fewer than fifty of them, it tells what is no wait, or `medians` (of their
/// classes) were no farther off.  Nothing where it is to be used.
std::optional<std::string> what_speaks_against(const std::vector<double>& told,
                                               const std::vector<double>& medians,
                                               const std::vector<Seconds>& waited);

}  // namespace hpcbatch::foresight
