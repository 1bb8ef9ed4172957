// Who goes where, as long as tasks may choose: the scarce fast device to the kind that gains most
// by it, and nobody to one on which it would end later than if it waited for another.
//
// The engine says what there is and what waits; it is told, for a class of tasks at a device, how
// good a place that is.
#pragma once

#include "broker/speed_table.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::broker {

// Which work belongs on which device, so that all of it is done soonest: a fractional assignment of
// work to unrelated machines, by prices.
//
// Each device has a price for a unit and second of it.  Work goes where it costs least; what too
// much work goes to becomes dearer (multiplicative weights: Plotkin, Shmoys, Tardos, "Fast
// approximation algorithms for fractional packing and covering problems", 1995).  With the prices
// at hand, whose turn it is at a device is seen without a plan: that of the work which would have to
// pay most elsewhere.

/// It cannot run there.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Tasks that are alike.
struct Work {
  double tasks{0};
  std::vector<double> cost;  ///< of one, by device: units times seconds, or kNever
};

/// By device.
struct Prices {
  std::vector<double> of;
  std::vector<double> until;  ///< seconds until all work is done that goes there
};

/// `units` by device, of which each is more than 0; `busy`: units times seconds that each is busy
/// before it can begin.
Prices match(const std::vector<double>& units, const std::vector<double>& busy,
             const std::vector<Work>& all);

/// What a task pays at a device against what it pays where that is least: 1 or more.
double regret(const Prices& prices, const Work& work, std::size_t device);

/// Of one kind of GPU, or cpus, all that pilots have for tasks.
struct Device {
  std::string name;
  double units{0};
  double busy{0};  ///< units times seconds that what runs there will still take
};

/// One way to run a task of a class: so many units of one device.
struct Way {
  std::string device;
  double units{0};
  std::size_t order{0};  ///< in which its user prefers it, from 0
  friend auto operator<=>(const Way&, const Way&) = default;
};

/// Tasks that wait and ask for the same.
struct Waiting {
  std::uint32_t id{0};
  std::string kind;
  double tasks{0};
  double seconds{60};     ///< of a run, where nothing is known of the kind
  std::vector<Way> ways;  ///< one for each device on which it can run
};

/// What runs now, by kind and device.
using Running = std::map<std::pair<std::string, std::string>, std::uint32_t>;

class Broker {
 public:
  /// So many runs of a kind on a device are tried whatever they may cost, one fewer where they agree,
  /// and fewer of a kind of which there are few; then it is known.
  static constexpr double kTrials = 3;

  SpeedTable& speeds() { return speeds_; }
  const SpeedTable& speeds() const { return speeds_; }

  /// Weighs anew.
  void weigh(const std::vector<Device>& devices, const std::vector<Waiting>& waiting,
             const Running& running);
  /// Nobody has a choice.
  void rest() { classes_.clear(); }
  bool weighs() const { return !classes_.empty(); }

  struct Place {
    double rank{1};       ///< the less the better: what it pays there against where it pays least
    bool is_left{false};  ///< it is done sooner if it waits for another device
  };
  /// Of a class that was not weighed: as good a place as any.
  Place place(std::uint32_t id, std::string_view device) const;
  /// One of the class goes there.
  void taken(std::uint32_t id, std::string_view device);

 private:
  struct Option {
    std::string device;
    double rank{1};
    bool is_left{false};
    double trials_left{0};
  };
  struct Class {
    std::string kind;
    std::vector<Option> options;
  };

  bool is_known(const Waiting& one) const;
  double count_of(const Waiting& one, const Running& running) const;
  double trials_left(const Waiting& one, const std::string& device, std::size_t places,
                     const Running& running) const;

  SpeedTable speeds_;
  std::map<std::uint32_t, Class> classes_;
};

}  // namespace hpcbatch::broker
