// NVIDIA's management library (NVML API Reference Guide), where this node has it.  One thread.
#pragma once

#include "gpu/devices/device.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::gpu {

// A shared library that this machine may have or not.

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

class Nvml {
 public:
  /// Null where there is none, or it does not start; `why` then says so.
  static std::unique_ptr<Nvml> open(std::string& why);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// All that the driver shows to this process; of a split GPU its slices, in its place.
  std::vector<Device> devices() const;
  Sample sample(const Device& device) const;

  /// An error that the driver has reported (NVIDIA, "Xid Errors").
  struct Xid {
    std::string uuid;
    std::uint64_t number{0};
  };
  /// Waits so long for one; nothing where none came, or the driver tells of none.
  std::optional<Xid> next_error(std::chrono::milliseconds time);
  /// From now on; false where the driver does not do that.
  bool listen();

  struct Functions;

 private:
  explicit Nvml(std::unique_ptr<Functions> functions);
  void* handle_of(const Device& device) const;

  std::unique_ptr<Functions> call_;
  void* events_{nullptr};
};

/// The GPU itself is at fault, and not the program that runs on it.
bool is_fault_of_device(std::uint64_t xid);
/// "Xid 79: it has fallen off the bus".
std::string xid_in_words(std::uint64_t xid);

}  // namespace hpcbatch::gpu
