// What is known of a GPU of this node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::gpu {

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

}  // namespace hpcbatch::gpu
