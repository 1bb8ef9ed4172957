// Whether what an estimator is given fits together.
#pragma once

#include "hpcbatch/estimator.hpp"

#include <optional>
#include <string>

namespace hpcbatch::xgboost {

/// One sentence, or nothing.
std::optional<std::string> fault_of(const TrainingTable& table);
/// Of a question to a model of these columns.
std::optional<std::string> fault_of(const FeatureTable& table,
                                    const std::vector<std::string>& features);

}  // namespace hpcbatch::xgboost
