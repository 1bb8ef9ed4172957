// What an estimator learns from, as bytes on the way from one process of ours to another on the same
// machine.
#pragma once

#include "hpcbatch/estimator.hpp"

#include <string>
#include <string_view>

namespace hpcbatch::estimate {

struct Lesson {
  std::string config_yaml;  ///< the estimator's
  TrainingTable table;
};

std::string to_bytes(const Lesson& lesson);
/// Throws std::invalid_argument where the bytes are not whole.
Lesson lesson_of(std::string_view bytes);

}  // namespace hpcbatch::estimate
