// The one harness of this program for libFuzzer.
#include "fuzz/harness.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hpcbatch::fuzz::harnesses().front().try_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
