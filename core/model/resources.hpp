// Named amounts in fixed point: what a task needs, a pilot has, a shape offers.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// An amount in 1/10000, so that fractions add up exactly; of bytes up to 900 TB.  What would be
/// more stays at the most that there is, and never turns round.
struct Amount {
  std::int64_t ticks{0};
  static constexpr std::int64_t kTicks = 10'000;
  static constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

  static constexpr Amount of(std::int64_t whole) {
    std::int64_t ticks = 0;
    return Amount{__builtin_mul_overflow(whole, kTicks, &ticks) ? (whole > 0 ? kMost : -kMost)
                                                                : ticks};
  }
  /// What is more than nothing stays more than nothing.
  static Amount of_fraction(double value);
  constexpr double value() const { return static_cast<double>(ticks) / kTicks; }
  constexpr std::int64_t whole() const { return ticks / kTicks; }

  friend constexpr auto operator<=>(Amount, Amount) = default;
  constexpr Amount& operator+=(Amount other) {
    if (__builtin_add_overflow(ticks, other.ticks, &ticks))
      ticks = other.ticks > 0 ? kMost : -kMost;
    return *this;
  }
  constexpr Amount& operator-=(Amount other) {
    if (__builtin_sub_overflow(ticks, other.ticks, &ticks))
      ticks = other.ticks < 0 ? kMost : -kMost;
    return *this;
  }
  friend constexpr Amount operator+(Amount a, Amount b) { return a += b; }
  friend constexpr Amount operator-(Amount a, Amount b) { return a -= b; }
};

// The known names; a site may have others (licences), which are only counted.
inline constexpr std::string_view kCpus = "cpus";
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kDisk = "disk";
/// A demand for any kind of GPU; a supply always names the kind: `gpus/a100`.
inline constexpr std::string_view kAnyGpu = "gpus";
inline constexpr std::string_view kGpuPrefix = "gpus/";
/// Stands between kinds of which a demand takes any one: `gpus/a100|h100`.
inline constexpr char kGpuEither = '|';
/// Whether a demand leaves open which kind of GPU it gets.
bool names_several_gpus(std::string_view demand);
/// Whether a demand by that name takes GPUs of that supply.
bool takes_gpu(std::string_view demand, std::string_view supply);

/// Sorted by name, no zero amounts.  A demand holds what is asked for, a supply what there is.
class Resources {
 public:
  using Entry = std::pair<std::string, Amount>;

  Amount get(std::string_view name) const;
  void set(std::string_view name, Amount amount);
  void add(const Resources& other);
  void subtract(const Resources& other);
  /// GPUs of all kinds together.
  Amount gpus() const;
  bool empty() const { return entries_.empty(); }
  const std::vector<Entry>& entries() const { return entries_; }
  friend auto operator<=>(const Resources&, const Resources&) = default;

 private:
  std::vector<Entry> entries_;
};

/// Whether `demand` can be taken out of `supply`; "any GPU" takes one kind, not a mixture.
bool fits(const Resources& demand, const Resources& supply);

/// What exactly is taken out of `supply` for `demand`: "any GPU" is given the kind of which most is
/// left.  The demand must fit.
Resources resolve(const Resources& demand, const Resources& supply);

/// How many of `demand` go into `supply` at the same time.
std::uint64_t how_often(const Resources& demand, const Resources& supply);

/// By what a task is fast or slow: the kind of GPU that it was granted, `gpus/a100`, else `cpus`.
std::string_view device_of(const Resources& granted);

/// The same of a part of one that was guessed to do: `gpus/a100*0.5`; and back to the device.
std::string packed_on(std::string_view device, double part);
std::string_view whole_device(std::string_view device);

/// `4 cpus, 8G memory, 2 a100`, for messages.
std::string show(const Resources& resources);

// One GPU of a pilot's node, as the pilot tells of it.

struct Gpu {
  std::uint32_t number{0};  ///< among its pilot's
  std::string uuid;         ///< empty: not known
  std::string name;
  std::uint64_t memory{0};  ///< bytes; 0: not known
  std::string capability;   ///< of CUDA, as 8.0
  std::string driver;
  std::string trouble;  ///< why it is set aside; empty: it is used
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// What one attempt did with its GPUs, where somebody looked.
struct GpuUse {
  std::uint32_t busy{0};       ///< percent of its time, on the average of them
  std::uint64_t memory{0};     ///< bytes of theirs, the most at a time
  std::uint64_t energy_mj{0};  ///< millijoules; of one that it shared its part
  friend bool operator==(const GpuUse&, const GpuUse&) = default;
};

}  // namespace hpcbatch
