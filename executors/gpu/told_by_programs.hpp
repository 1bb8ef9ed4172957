// What nvidia-smi and rocm-smi tell, where a library of the maker does not.
#pragma once

#include "gpu/devices/device.hpp"

#include <string_view>
#include <vector>

namespace hpcbatch::gpu {

/// Of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits` with kNvidiaColumns; lines that
/// are none are passed over.
std::vector<Device> from_nvidia_smi(std::string_view text);
inline constexpr const char* kNvidiaColumns =
    "index,uuid,memory.total,memory.used,compute_cap,driver_version,pci.bus_id,name";

/// Of `rocm-smi --showproductname --showuniqueid --showmeminfo vram --json`.
std::vector<Device> from_rocm_smi(std::string_view text);

}  // namespace hpcbatch::gpu
