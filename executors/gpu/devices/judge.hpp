// What samples of a GPU say against it.  Pure.
#pragma once

#include "gpu/devices/device.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch::gpu {

class Judge {
 public:
  /// `broken_bits`: as it had them before.
  explicit Judge(std::uint64_t broken_bits) : broken_bits_(broken_bits) {}

  /// One sample a second; a sentence where it is not to be used any more, told once.
  std::optional<std::string> look(const Sample& sample, bool is_regular = true);

 private:
  std::uint64_t broken_bits_;
  unsigned hot_for_{0};
  bool is_told_{false};
};

}  // namespace hpcbatch::gpu
