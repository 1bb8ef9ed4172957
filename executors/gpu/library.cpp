#include "gpu/library.hpp"

#include <dlfcn.h>

namespace hpcbatch::gpu {

Library::Library(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    if (why_not_.empty()) why_not_ = ::dlerror();
  }
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void* Library::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace hpcbatch::gpu
