// The most that a pilot may say in one message, all in one place.  What is more, or is of no form
// that a pilot has ever written, is none of ours speaking: nothing of it is acted upon.  A frame as
// a whole has 16 MiB at most (wire/encrypted_link.hpp), which bounds the lists of attempts and output.
// Pure.
#pragma once

#include "model/ids.hpp"
#include "model/task.hpp"
#include "wire/wire.pb.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch {

namespace limits {
constexpr int kResources = 256;          ///< named amounts of a node
constexpr int kGpus = 1024;              ///< of a node
constexpr int kServices = 4096;          ///< that live at a pilot, and that start there
constexpr int kRefusals = 256;           ///< of its self-checks
constexpr int kCpus = 65536;             ///< that a task was bound to, and their highest number
constexpr int kPublished = 65536;        ///< outputs of a task
constexpr std::size_t kName = 256;       ///< of a node, a resource, a version, a batch job, a GPU
constexpr std::size_t kLongName = 4096;  ///< of a service, a way to the engine, a file
constexpr std::size_t kText = std::size_t{64}
                              << 10;  ///< for people, and what a task says of itself
constexpr std::uint64_t kPlace = std::uint64_t{1} << 60;  ///< in a stream or a log
constexpr std::int64_t kTimeLeftMs = std::int64_t{100} * 365 * 24 * 3600 * 1000;
}  // namespace limits

/// What of a message is beyond these, in words; nothing: all of it is within them.
std::optional<std::string> beyond_limits(const PilotId& pilot, const wire::ToEngine& message);

/// The same of a result that lies in an outbox of that allocation.
std::optional<std::string> beyond_limits(const AllocationId& allocation,
                                         const wire::Result& result);

/// What was measured on a node, brought to what can be true: a clock that is far off is not
/// believed (only the length of a run is taken from it then), an amount that no node has counts as
/// not known, too long a text is cut.
Outcome sensible(Outcome outcome, Time now);

}  // namespace hpcbatch
