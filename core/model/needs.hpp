// What a task asks for wherever it runs, and how its image is run.
#pragma once

#include "model/ids.hpp"
#include "model/rare.hpp"
#include "model/resources.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// What a task asks for, wherever it runs.

/// What of needs nobody said: it was guessed from runs before.  A need, and no limit.
struct Guess {
  std::uint32_t runs{0};  ///< that it is from
  bool memory{false};
  bool time{false};
  bool gpus{false};       ///< a part of what was said does: it is packed with others
  Amount memory_asked{};  ///< what was said of it; 0: nothing
  Amount gpus_asked{};    ///< what was said of them
  friend auto operator<=>(const Guess&, const Guess&) = default;
};

/// Of what asks for GPUs, or may be run in several ways.
struct DeviceChoice {
  std::vector<Resources> instead;  ///< would do as well as the needs' `amounts`, the best first
  /// What tasks of one kind take is learned by device.
  std::string kind;
  friend auto operator<=>(const DeviceChoice&, const DeviceChoice&) = default;
};

/// `amounts` always holds cpus.  Without memory a task counts for its cpus' share of the pilot's.
/// `time` is both the limit and the need, unless it is guessed.
struct Needs {
  Resources amounts;
  std::optional<Duration> time;  ///< its limit
  /// So much must be left of a pilot for it to begin there; no value: its limit must be.
  std::optional<Duration> time_request;
  std::string site;                 ///< empty: any
  std::vector<std::string> not_on;  ///< sites that may not run it; sorted
  /// Sites that do not see its files: these have to be staged in there first; sorted.
  std::vector<std::string> staged_to;
  bool own_files{false};          ///< then each task of its array has files of its own
  std::vector<std::string> tags;  ///< all of them must be among the shape's; sorted
  std::uint32_t nodes{1};
  std::string service;  ///< the process that its tasks share; better where that is warm
  RareOptional<Guess> guess{};
  Rare<DeviceChoice> device{};
  friend auto operator<=>(const Needs&, const Needs&) = default;
};

/// What must be left of a pilot for the task to begin there.
inline std::optional<Duration> time_to_begin(const Needs& needs) {
  return needs.time_request ? needs.time_request : needs.time;
}

/// A task may be run in so many ways: with `amounts`, way 0, or with one of `instead`.
inline std::size_t count_of_ways(const Needs& needs) {
  return 1 + needs.device->instead.size();
}
inline const Resources& way_of(const Needs& needs, std::size_t way) {
  return way == 0 ? needs.amounts : needs.device->instead[way - 1];
}
/// Whether it is open on which device it will run.
bool leaves_device_open(const Needs& needs);
/// The first way that goes into `supply`.
std::optional<std::size_t> way_into(const Needs& needs, const Resources& supply);
/// On what it would run in `supply` (device_of), in the first way that goes there; nothing where none
/// does.
std::optional<std::string> device_in(const Needs& needs, const Resources& supply);
/// How many at the same time go into `supply`, all of them in one way.
std::uint64_t how_often(const Needs& needs, const Resources& supply);
/// The first way in which it runs on such a device (device_of); way 0 where there is none.
std::size_t way_on(const Needs& needs, std::string_view device);

/// What a user says anew of needs; of all else that was said before stands.
struct NeedsChange {
  Resources amounts;
  std::optional<Duration> time, time_request;
  bool any() const { return time || time_request || !amounts.empty(); }
};
Needs changed(Needs needs, const NeedsChange& change);
/// Whether a task that needs `before` might not do with `after`.
bool gets_less(const Needs& before, const Needs& after);

/// So many GPUs of whatever it asks for, where it asks for some.
void set_gpus(Resources& amounts, Amount count);

/// As they were said, without what was guessed.
Needs as_asked(Needs needs);

/// Whether a task may run at a site, whatever that has.
bool may_run_at(const Needs& needs, std::string_view site);

/// Needs of one resource class: its time is what must be left, and time and memory are rounded up in
/// steps of about 10 %, so that matching costs per class and not per task.  Limits stay exact per task.
Needs class_of(const Needs& needs);

/// The needs of those tasks whose files are on these sites: they may run there and where nothing
/// has to be staged in.
Needs with_files_at(const Needs& needs, const std::vector<std::string>& sites);

std::string show(const Needs& needs);
/// Of needs that have a guess: what of them was guessed, and from what.
std::string guess_in_words(const Needs& needs);

// How a task's image is run, beside what is so in any container.

/// A folder or file of the node that a container shows.
struct ContainerBind {
  std::string from, to;
  bool read_only{false};
  friend bool operator==(const ContainerBind&, const ContainerBind&) = default;
};

struct ContainerTerms {
  std::vector<ContainerBind> binds;
  bool no_network{false};
  std::optional<bool> gpus;  ///< none: where the task was granted some
  bool keeps_entrypoint{false};
  std::map<std::string, std::string> variables;  ///< over all others
  std::string runtime;                           ///< empty: as the site says
  friend bool operator==(const ContainerTerms&, const ContainerTerms&) = default;
};

/// `/data`, `/data:/mnt` or `/data:/mnt:ro`; nothing where it is none of these.
std::optional<ContainerBind> parse_container_bind(std::string_view text);

/// Takes `network`, `gpu`, `entrypoint` or `runtime`; else one sentence that goes on from the key's
/// name.
std::string take_container_word(ContainerTerms& terms, std::string_view key,
                                std::string_view value);

}  // namespace hpcbatch
