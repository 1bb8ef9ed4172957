// libcuda.so.1 for a node whose GPUs are lines in a file (node.hpp): what gpu/kernel_check.cpp
// calls, with the names and the types of NVIDIA's (CUDA Driver API).  Memory of the device is ours;
// of kernels it knows the one of that check.
#include "fakegpu/node.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using hpcbatch::fakegpu::Gpu;
using hpcbatch::fakegpu::Node;
using hpcbatch::fakegpu::User;

constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kNoMemory = 2;
constexpr int kNotInitialised = 3;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kNotFound = 500;
constexpr int kLaunchFailed = 719;

std::optional<Gpu>& current() {
  static std::optional<Gpu> gpu;
  return gpu;
}

std::map<unsigned long long, std::size_t>& allocated() {
  static std::map<unsigned long long, std::size_t> all;
  return all;
}

std::vector<Gpu> seen() {
  const auto node = Node::here();
  if (!node) return {};
  std::vector<Gpu> gpus = hpcbatch::fakegpu::visible(*node);
  std::erase_if(gpus, [](const Gpu& gpu) { return gpu.is("lost"); });
  return gpus;
}

std::uint64_t taken(const Gpu& gpu) {
  std::uint64_t used = gpu.value("taken") << 20;
  for (const User& user : Node::here()->users(gpu.uuid)) used += user.memory;
  return std::min(used, gpu.memory);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,performance-no-int-to-ptr): the names and types are NVIDIA's
extern "C" {

int cuInit(unsigned) {
  return Node::here() ? kOk : kNoDevice;
}

int cuGetErrorString(int code, const char** text) {
  *text = code == kNoMemory       ? "out of memory"
          : code == kNoDevice     ? "no CUDA-capable device is detected"
          : code == kLaunchFailed ? "unspecified launch failure"
                                  : "unknown error";
  return kOk;
}

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(seen().size());
  return *count == 0 ? kNoDevice : kOk;
}

int cuCtxCreate_v2(void** context, unsigned, int device) {
  const std::vector<Gpu> gpus = seen();
  if (device < 0 || static_cast<std::size_t>(device) >= gpus.size()) return kInvalidDevice;
  current() = gpus[static_cast<std::size_t>(device)];
  *context = &current();
  return kOk;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (!current()) return kNotInitialised;
  *total = current()->memory;
  *free = current()->memory - taken(*current());
  return kOk;
}

int cuMemAlloc_v2(unsigned long long* place, std::size_t bytes) {
  if (!current()) return kNotInitialised;
  std::size_t free = 0, total = 0;
  cuMemGetInfo_v2(&free, &total);
  if (bytes > free || current()->is("short")) return kNoMemory;
  // Pages that nobody touches cost nothing, however many there are.
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return kNoMemory;
  *place = reinterpret_cast<unsigned long long>(pages);
  allocated()[*place] = bytes;
  return kOk;
}

int cuMemFree_v2(unsigned long long place) {
  const auto found = allocated().find(place);
  if (found == allocated().end()) return kInvalidValue;
  ::munmap(reinterpret_cast<void*>(place), found->second);
  allocated().erase(found);
  return kOk;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kOk;
}

int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kOk;
}

int cuModuleLoadData(void** module, const void* text) {
  *module = const_cast<void*>(text);
  return std::strstr(static_cast<const char*>(text), ".entry") == nullptr ? kNotFound : kOk;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = module;
  return std::strstr(static_cast<const char*>(module), name) == nullptr ? kNotFound : kOk;
}

int cuLaunchKernel(void*, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, void*, void** parameters, void**) {
  if (!current()) return kNotInitialised;
  if (current()->is("stuck")) ::pause();
  if (current()->is("fails")) return kLaunchFailed;
  auto* numbers = *static_cast<std::uint32_t**>(parameters[0]);
  const std::uint32_t count = *static_cast<std::uint32_t*>(parameters[1]);
  const std::uint32_t run = std::min(count, blocks * threads);
  for (std::uint32_t i = 0; i < run; ++i) numbers[i] = 1664525 * numbers[i] + 1013904223;
  if (current()->is("wrong")) ++numbers[run / 2];
  return kOk;
}

int cuCtxSynchronize() {
  return kOk;
}
}
// NOLINTEND(readability-identifier-naming,performance-no-int-to-ptr)
