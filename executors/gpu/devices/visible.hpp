// Which GPUs a batch job was given, by the words of the batch system.
#pragma once

#include "gpu/devices/device.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::gpu {

/// Those of `all` that CUDA_VISIBLE_DEVICES names, in its order: by number, by UUID or by the
/// beginning of one; without it (nothing) all.  What names none that is there ends the list, as
/// CUDA has it (CUDA C++ Programming Guide, "CUDA Environment Variables").  Where a control group
/// shows fewer devices than the numbers would need, the numbers are those of the whole node, and
/// their order counts.
std::vector<Device> visible(const std::vector<Device>& all, std::optional<std::string_view> said);

}  // namespace hpcbatch::gpu
