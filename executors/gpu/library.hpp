// A shared library that this machine may have or not.
#pragma once

#include <string>

namespace hpcbatch::gpu {

class Library {
 public:
  /// The first of these that can be loaded.
  explicit Library(std::initializer_list<const char*> names);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& why_not() const { return why_not_; }

  /// Null where it has no such function.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  void* handle_{nullptr};
  std::string why_not_;
};

}  // namespace hpcbatch::gpu
