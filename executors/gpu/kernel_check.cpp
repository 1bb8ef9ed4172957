#include "gpu/kernel_check.hpp"

#include "gpu/nvml.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace hpcbatch::gpu {
namespace {

using Context = void*;
using Module = void*;
using Function = void*;
using Place = unsigned long long;
constexpr int kWell = 0;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr unsigned kBlock = 256;
constexpr std::uint32_t kFactor = 1664525, kAdded = 1013904223;

/// Each number of `data` is replaced by kFactor * it + kAdded.  Any GPU since 2014 runs it.
constexpr const char* kKernel = R"(.version 5.0
.target sm_50
.address_size 64
.visible .entry hpcbatch_check(.param .u64 data, .param .u32 count)
{
  .reg .pred %outside;
  .reg .b32 %r<8>;
  .reg .b64 %place<5>;
  ld.param.u64 %place1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %outside, %r5, %r1;
  @%outside bra DONE;
  cvta.to.global.u64 %place2, %place1;
  mul.wide.u32 %place3, %r5, 4;
  add.s64 %place4, %place2, %place3;
  ld.global.u32 %r6, [%place4];
  mad.lo.s32 %r7, %r6, 1664525, 1013904223;
  st.global.u32 [%place4], %r7;
DONE:
  ret;
}
)";

struct Cuda {
  Library library{"libcuda.so.1"};

  int (*init)(unsigned){library.find<int(unsigned)>("cuInit")};
  int (*words)(int, const char**){library.find<int(int, const char**)>("cuGetErrorString")};
  int (*count)(int*){library.find<int(int*)>("cuDeviceGetCount")};
  int (*make_context)(Context*, unsigned,
                      int){library.find<int(Context*, unsigned, int)>("cuCtxCreate_v2")};
  int (*memory)(std::size_t*,
                std::size_t*){library.find<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2")};
  int (*take)(Place*, std::size_t){library.find<int(Place*, std::size_t)>("cuMemAlloc_v2")};
  int (*give)(Place){library.find<int(Place)>("cuMemFree_v2")};
  int (*to_device)(Place, const void*, std::size_t){
      library.find<int(Place, const void*, std::size_t)>("cuMemcpyHtoD_v2")};
  int (*from_device)(void*, Place,
                     std::size_t){library.find<int(void*, Place, std::size_t)>("cuMemcpyDtoH_v2")};
  int (*load)(Module*, const void*){library.find<int(Module*, const void*)>("cuModuleLoadData")};
  int (*function)(Function*, Module, const char*){
      library.find<int(Function*, Module, const char*)>("cuModuleGetFunction")};
  int (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                void*, void**, void**){
      library.find<int(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, void*, void**, void**)>("cuLaunchKernel")};
  int (*finish)(){library.find<int()>("cuCtxSynchronize")};

  bool are_all_there() const {
    return init != nullptr && count != nullptr && make_context != nullptr && memory != nullptr &&
           take != nullptr && give != nullptr && to_device != nullptr && from_device != nullptr &&
           load != nullptr && function != nullptr && launch != nullptr && finish != nullptr;
  }
  std::string in_words(int code) const {
    const char* text = nullptr;
    if (words == nullptr || words(code, &text) != kWell || text == nullptr)
      return "CUDA error " + std::to_string(code);
    return text;
  }
};

std::string in_gib(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB",
                static_cast<double>(bytes) / static_cast<double>(kGiB));
  return text;
}

std::string check_memory(const Cuda& cuda, std::size_t& free) {
  std::size_t total = 0;
  if (const int code = cuda.memory(&free, &total); code != kWell)
    return "it does not tell its memory: " + cuda.in_words(code);
  // What drivers and a screen take is less.
  if (total - free > std::max(kGiB, total / 20))
    return "it is not free: " + in_gib(total - free) + " of its " + in_gib(total) +
           " are taken by others";
  Place most = 0;
  if (const int code = cuda.take(&most, free - free / 10); code != kWell)
    return "of " + in_gib(free) +
           " that are free nine tenths cannot be had: " + cuda.in_words(code);
  cuda.give(most);
  return {};
}

std::string check_result(const Cuda& cuda, std::size_t free) {
  Module module = nullptr;
  Function function = nullptr;
  if (const int code = cuda.load(&module, kKernel); code != kWell)
    return "it takes no kernel: " + cuda.in_words(code);
  if (const int code = cuda.function(&function, module, "hpcbatch_check"); code != kWell)
    return "it takes no kernel: " + cuda.in_words(code);
  const std::size_t bytes = std::min(64 * kMebibyte, std::max(kMebibyte, free / 4));
  auto count = static_cast<std::uint32_t>(bytes / sizeof(std::uint32_t));
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] = i ^ 0x5bd1e995;
  Place data = 0;
  int code = cuda.take(&data, bytes);
  if (code == kWell) code = cuda.to_device(data, numbers.data(), bytes);
  void* parameters[] = {&data, &count};
  if (code == kWell) {
    code = cuda.launch(function, (count + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1, 0, nullptr,
                       parameters, nullptr);
  }
  if (code == kWell) code = cuda.finish();
  std::vector<std::uint32_t> found(count);
  if (code == kWell) code = cuda.from_device(found.data(), data, bytes);
  if (code != kWell) return "a small kernel fails on it: " + cuda.in_words(code);
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (found[i] != kFactor * numbers[i] + kAdded) ++wrong;
  }
  if (wrong != 0)
    return "it computes wrong: " + std::to_string(wrong) + " of " + std::to_string(count) +
           " results of a small kernel";
  return {};
}

}  // namespace

std::string check_kernel() {
  const Cuda cuda;
  if (!cuda.library) return "programs of CUDA cannot use it: " + cuda.library.why_not();
  if (!cuda.are_all_there()) return "programs of CUDA cannot use it: libcuda.so.1 is too old";
  if (const int code = cuda.init(0); code != kWell)
    return "programs of CUDA cannot use it: " + cuda.in_words(code);
  int count = 0;
  if (const int code = cuda.count(&count); code != kWell || count == 0)
    return "programs of CUDA do not see it";
  Context context = nullptr;
  if (const int code = cuda.make_context(&context, 0, 0); code != kWell)
    return "programs of CUDA cannot use it: " + cuda.in_words(code);
  std::size_t free = 0;
  if (std::string why = check_memory(cuda, free); !why.empty()) return why;
  return check_result(cuda, free);
}

}  // namespace hpcbatch::gpu
