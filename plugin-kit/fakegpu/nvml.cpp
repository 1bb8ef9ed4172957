// libnvidia-ml.so.1 for a node whose GPUs are lines in a file (node.hpp): the functions that
// gpu/nvml.cpp calls, with the names and the types of NVIDIA's (NVML API Reference Guide).
#include "fakegpu/node.hpp"
#include "gpu/devices/device.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

using hpcbatch::fakegpu::Gpu;
using hpcbatch::fakegpu::Node;
using hpcbatch::fakegpu::User;
using namespace hpcbatch::gpu::nvml;

constexpr int kOk = 0;
constexpr int kBadArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kTooSmall = 7;
constexpr int kNoDriver = 9;
constexpr int kTimeout = 10;
constexpr int kLost = 15;
constexpr unsigned long long kXidEvent = 0x8;
constexpr unsigned long long kHeat = 0x40;
constexpr unsigned kPollMicroseconds = 20'000;

/// Kept for the life of the process: its pointers are the handles.
std::vector<std::string>& uuids() {
  static std::vector<std::string> all;
  return all;
}

std::size_t& errors_told() {
  static std::size_t count = 0;
  return count;
}

void* handle(std::size_t index) {
  return reinterpret_cast<void*>(index + 1);  // NOLINT(performance-no-int-to-ptr): a handle
}

std::string uuid_of(void* of) {
  const auto index = reinterpret_cast<std::size_t>(of) - 1;
  return index < uuids().size() ? uuids()[index] : std::string();
}

/// What is there just now.
template <class Do>
int with(void* of, const Do& action) {
  const auto node = Node::here();
  if (!node) return kNoDriver;
  const std::string uuid = uuid_of(of);
  for (const Gpu& gpu : node->gpus()) {
    if (gpu.uuid == uuid) return gpu.is("lost") ? kLost : action(*node, gpu);
  }
  return kLost;
}

int put(const std::string& text, char* into, unsigned size) {
  if (text.size() + 1 > size) return kTooSmall;
  std::memcpy(into, text.c_str(), text.size() + 1);
  return kOk;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,performance-no-int-to-ptr): the names and types are NVIDIA's
extern "C" {

int nvmlInit_v2() {
  const auto node = Node::here();
  if (!node) return kNoDriver;
  uuids().clear();
  for (const Gpu& gpu : node->gpus()) uuids().push_back(gpu.uuid);
  return kOk;
}

int nvmlShutdown() {
  return kOk;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case kNoDriver:
      return "Driver Not Loaded";
    case kLost:
      return "GPU is lost";
    case kNotFound:
      return "Not Found";
    default:
      return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* into, unsigned size) {
  return put("550.54.15", into, size);
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12040;
  return kOk;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(uuids().size());
  return kOk;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= uuids().size()) return kBadArgument;
  *device = handle(index);
  return kOk;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const auto found = std::find(uuids().begin(), uuids().end(), uuid);
  if (found == uuids().end()) return kNotFound;
  *device = handle(static_cast<std::size_t>(found - uuids().begin()));
  return kOk;
}

int nvmlDeviceGetName(void* device, char* into, unsigned size) {
  return with(device,
              [&](const Node&, const Gpu& gpu) { return put("NVIDIA " + gpu.kind, into, size); });
}

int nvmlDeviceGetUUID(void* device, char* into, unsigned size) {
  return put(uuid_of(device), into, size);
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  return with(device, [&](const Node& node, const Gpu& gpu) {
    std::uint64_t used = gpu.value("taken") << 20;
    for (const User& user : node.users(gpu.uuid)) used += user.memory;
    *memory = {gpu.memory, gpu.memory - std::min<std::uint64_t>(used, gpu.memory), used};
    return kOk;
  });
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  return with(device, [&](const Node&, const Gpu& gpu) {
    return std::sscanf(gpu.capability.c_str(), "%d.%d", major, minor) == 2 ? kOk : kNotSupported;
  });
}

int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  return with(device, [&](const Node&, const Gpu&) {
    *pci = {};
    pci->bus = static_cast<unsigned>(reinterpret_cast<std::size_t>(device));
    std::snprintf(pci->bus_id, sizeof pci->bus_id, "FFFFFFFF:%02X:00.0", pci->bus & 0xff);
    return kOk;
  });
}

int nvmlDeviceGetTotalEccErrors(void* device, int kind, int, unsigned long long* count) {
  if (kind != 1) return kNotSupported;
  return with(device, [&](const Node&, const Gpu& gpu) {
    *count = gpu.value("broken");
    return kOk;
  });
}

int nvmlDeviceGetUtilizationRates(void* device, Rates* rates) {
  return with(device, [&](const Node& node, const Gpu& gpu) {
    unsigned busy = 0;
    for (const User& user : node.users(gpu.uuid)) busy += user.busy;
    *rates = {std::min(busy, 100U), std::min(busy, 100U) / 2};
    return kOk;
  });
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return with(device, [&](const Node&, const Gpu& gpu) {
    *reasons = gpu.is("hot") ? kHeat : 0;
    return kOk;
  });
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* into) {
  return with(device, [&](const Node& node, const Gpu& gpu) {
    const auto users = node.users(gpu.uuid);
    if (users.size() > *count) {
      *count = static_cast<unsigned>(users.size());
      return kTooSmall;
    }
    *count = static_cast<unsigned>(users.size());
    for (const User& user : users) *into++ = {user.pid, user.memory, ~0U, ~0U};
    return kOk;
  });
}

int nvmlEventSetCreate(void** events) {
  *events = handle(0);
  const auto node = Node::here();
  errors_told() = node ? node->errors(0).size() : 0;
  return kOk;
}

int nvmlEventSetFree(void*) {
  return kOk;
}

int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) {
  return kOk;
}

int nvmlEventSetWait_v2(void*, EventData* event, unsigned milliseconds) {
  const auto node = Node::here();
  if (!node) return kNoDriver;
  for (unsigned long long waited = 0;; waited += kPollMicroseconds) {
    const auto errors = node->errors(errors_told());
    if (!errors.empty()) {
      ++errors_told();
      void* device = nullptr;
      if (nvmlDeviceGetHandleByUUID(errors.front().first.c_str(), &device) != kOk) continue;
      *event = {device, kXidEvent, errors.front().second, ~0U, ~0U};
      return kOk;
    }
    if (waited >= 1000ULL * milliseconds) return kTimeout;
    ::usleep(kPollMicroseconds);
  }
}
}
// NOLINTEND(readability-identifier-naming,performance-no-int-to-ptr)
