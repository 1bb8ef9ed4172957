// What a task asks for, wherever it runs.
#pragma once

#include "model/resources.hpp"
#include "model/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// `amounts` always holds cpus.  Without memory a task counts for its cpus' share of the pilot's.
/// `time` is both the limit and the need.
struct Needs {
  Resources amounts;
  std::optional<Duration> time;
  std::string site;               ///< empty: any
  std::vector<std::string> tags;  ///< all of them must be among the shape's; sorted
  std::uint32_t nodes{1};
  std::string service;  ///< the process that its tasks share; better where that is warm
  friend auto operator<=>(const Needs&, const Needs&) = default;
};

/// Needs of one resource class: time and memory rounded up in steps of about 10 %, so that matching
/// costs per class and not per task.  Limits stay exact per task.
Needs class_of(const Needs& needs);

std::string show(const Needs& needs);

}  // namespace hpcbatch
