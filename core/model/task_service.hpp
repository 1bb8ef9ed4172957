// A process that pilots keep warm for tasks that share it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

struct TaskService {
  enum class Kind : std::uint8_t {
    Fork,   ///< it forks each task's process
    Answer  ///< its workers answer tasks' requests, one batch after the other
  };
  Kind kind{Kind::Fork};
  std::string name;
  std::vector<std::string> argv;                 ///< starts it
  std::map<std::string, std::string> variables;  ///< over the environment of its tasks
  std::uint64_t memory{std::uint64_t{2} << 30};  ///< bytes that it, or a worker, may hold
  std::chrono::milliseconds idle{std::chrono::minutes{5}};  ///< ends after that long unwanted
  std::uint32_t requests{10'000};                           ///< is started anew after so many
  std::chrono::milliseconds start{0};  ///< without a sign of life while it starts
  std::uint32_t batch{1};              ///< requests that a worker is handed together at most
  std::uint32_t instances{0};  ///< workers on the same devices at most; 0: one for each request
  bool on_devices{false};      ///< its tasks have GPUs: a worker runs on those of its requests
  friend bool operator==(const TaskService&, const TaskService&) = default;
};

/// Bounds of what may be asked for.
inline constexpr std::uint32_t kMostServiceRequests = 1'000'000'000;
inline constexpr std::uint32_t kLargestServiceBatch = 1'000;
inline constexpr std::uint32_t kMostServiceInstances = 1'000;

}  // namespace hpcbatch
