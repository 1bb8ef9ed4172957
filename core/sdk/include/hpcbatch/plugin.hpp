// What the four HPCBATCH_SCHEDULER/TRANSPORT/TOOL/ESTIMATOR macros are made of: a constant descriptor and
// one `create`.
#pragma once

#include "hpcbatch/abi.h"

#include <cstdint>
#include <cstdio>
#include <exception>

#ifdef _GLIBCXX_DEBUG
#define HPCBATCH_FINGERPRINT_DEBUG "/debug"
#else
#define HPCBATCH_FINGERPRINT_DEBUG ""
#endif
#define HPCBATCH_STRINGIFY_(x) #x
#define HPCBATCH_STRINGIFY(x) HPCBATCH_STRINGIFY_(x)
#define HPCBATCH_FINGERPRINT \
  "cxx20 libstdc++/cxx11=" HPCBATCH_STRINGIFY(_GLIBCXX_USE_CXX11_ABI) HPCBATCH_FINGERPRINT_DEBUG

namespace hpcbatch::detail {

template <class Interface, class Concrete>
void* create_plugin(const char* config_yaml, char* error, std::uint32_t error_size) noexcept {
  try {
    // The cast comes before the pointer loses its type: the host casts back to the interface, never
    // to the class.
    return static_cast<Interface*>(new Concrete(config_yaml));
  } catch (const std::exception& e) {
    std::snprintf(error, error_size, "%s", e.what());
  } catch (...) {
    std::snprintf(error, error_size, "its constructor threw something that is no std::exception");
  }
  return nullptr;
}

}  // namespace hpcbatch::detail

#define HPCBATCH_PLUGIN_(Interface, Concrete, kind, name, version) \
  extern "C" __attribute__((visibility("default")))                \
  const hpcbatch_plugin_descriptor hpcbatch_plugin;                \
  extern "C" const hpcbatch_plugin_descriptor hpcbatch_plugin = {  \
      HPCBATCH_ABI_MAGIC,                                          \
      HPCBATCH_ABI_MAJOR,                                          \
      HPCBATCH_ABI_MINOR,                                          \
      sizeof(hpcbatch_plugin_descriptor),                          \
      kind,                                                        \
      name,                                                        \
      version,                                                     \
      HPCBATCH_FINGERPRINT,                                        \
      &hpcbatch::detail::create_plugin<Interface, Concrete>}
