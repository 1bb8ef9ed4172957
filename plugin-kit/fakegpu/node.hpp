// A folder that stands for the GPUs of a node: who they are, what is wrong with them, who uses them.
//
//   gpus        a line for each: UUID KIND MEMORY-IN-MiB CAPABILITY [FAULT[=VALUE] ...]
//   errors      a line for each error that a driver would report: UUID NUMBER
//   use/PID     of a program that uses some: a line for each, UUID MiB BUSY-PERCENT
//
// Faults: lost (it cannot be asked), taken=MiB (somebody else has that much of it), wrong (computes
// wrong), stuck (a kernel does not end), broken=N (errors that ECC could not mend), hot.
#pragma once

#include "gpu/devices/device.hpp"

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::fakegpu {

struct Gpu {
  std::string uuid;
  std::string kind;
  std::uint64_t memory{0};  ///< bytes
  std::string capability;
  std::map<std::string, std::string> faults;

  bool is(const std::string& fault) const { return faults.contains(fault); }
  std::uint64_t value(const std::string& fault) const;
};

struct User {
  std::uint32_t pid{0};
  std::uint64_t memory{0};  ///< bytes
  unsigned busy{0};         ///< percent
};

/// Copies are cheap; everything is read anew each time, so that a test may change it.
class Node {
 public:
  explicit Node(std::string folder) : folder_(std::move(folder)) {}
  /// The one that HPCBATCH_FAKEGPU names; none: nothing there.
  static std::optional<Node> here();

  std::vector<Gpu> gpus() const;
  /// Those of the programs that live.
  std::vector<User> users(const std::string& uuid) const;
  /// Lines of `errors` from the given number on.
  std::vector<std::pair<std::string, std::uint64_t>> errors(std::size_t from) const;
  const std::string& folder() const { return folder_; }

  /// This process uses that much of these; throws std::runtime_error where it cannot be said.
  void use(const std::vector<std::string>& uuids, std::uint64_t memory, unsigned busy) const;
  void use_no_more() const;

 private:
  std::string folder_;
};

/// Those that CUDA_VISIBLE_DEVICES names.
std::vector<Gpu> visible(const Node& node);

// What work of a class takes on a kind of GPU, and how fast it goes beside others.  Pure.

/// Alone on one GPU.
struct Cost {
  double seconds{0};
  std::uint64_t memory{0};  ///< bytes
  unsigned busy{100};       ///< percent of the time in which it keeps the GPU busy
};

/// A line for each: CLASS KIND SECONDS MEMORY-IN-MiB BUSY-PERCENT; `#` begins a comment.
using CostTable = std::map<std::pair<std::string, std::string>, Cost>;
/// Throws std::invalid_argument with the line that is none.
CostTable read_costs(std::istream& text);

/// The part of its own speed at which one goes that keeps a GPU busy for `own` percent, beside
/// others that do for `others` percent: what is left is shared, and taking turns costs a twentieth.
double speed_beside(unsigned own, unsigned others);

}  // namespace hpcbatch::fakegpu
