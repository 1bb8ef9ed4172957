// What is known of a GPU of this node, which of them a batch job was given, and what samples say
// against one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::gpu {

// What is known of a GPU of this node.

struct Device {
  unsigned index{0};  ///< as whoever tells of it counts, from 0
  std::string uuid;   ///< GPU-... or MIG-...; empty where nobody knows it
  std::string name;   ///< as its maker calls it
  std::uint64_t memory{0};
  std::uint64_t memory_used{0};
  std::string capability;  ///< of CUDA, as 8.0; empty: not known
  std::string driver;
  std::string cuda;                ///< newest version that the driver speaks, as 12.4
  std::string pci;                 ///< its bus id
  int numa_node{-1};               ///< whose cores are near it; -1: not known
  bool is_slice{false};            ///< of a GPU that is split (MIG)
  std::vector<unsigned> linked{};  ///< indices of those that it is tied to by NVLink
  std::uint64_t broken_bits{0};    ///< that ECC could not mend, since the driver was loaded
  std::string trouble;             ///< why it is not to be used; empty: nothing is known against it
};

/// A program that uses one.
struct Process {
  std::uint32_t pid{0};
  std::uint64_t memory{0};  ///< bytes
};

/// What one does just now.
struct Sample {
  unsigned busy{0};  ///< percent of the last second in which a kernel ran
  std::uint64_t memory{0};
  std::optional<std::uint64_t> energy_mj;  ///< since the driver was loaded; millijoules
  std::vector<Process> processes{};
  std::uint64_t broken_bits{0};
  bool is_hot{false};   ///< it is slowed down to cool
  std::string trouble;  ///< it cannot be asked any more: why
};

// What samples of a GPU say against it.  Pure.

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

// Which GPUs a batch job was given, by the words of the batch system.

/// Those of `all` that CUDA_VISIBLE_DEVICES names, in its order: by number, by UUID or by the
/// beginning of one; without it (nothing) all.  What names none that is there ends the list, as
/// CUDA has it (CUDA C++ Programming Guide, "CUDA Environment Variables").  Where a control group
/// shows fewer devices than the numbers would need, the numbers are those of the whole node, and
/// their order counts.
std::vector<Device> visible(const std::vector<Device>& all, std::optional<std::string_view> said);

}  // namespace hpcbatch::gpu

namespace hpcbatch::gpu::nvml {

// The types of NVIDIA's management library (NVML API Reference Guide), as far as we use it: their
// order and sizes are its interface.

using Handle = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct Rates {
  unsigned gpu, memory;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem;
  char bus_id[32];
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned instance, compute_instance;
};
struct EventData {
  Handle device;
  unsigned long long type, data;
  unsigned instance, compute_instance;
};

}  // namespace hpcbatch::gpu::nvml
