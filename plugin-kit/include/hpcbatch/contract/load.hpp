// Loads one plugin for its tests: the short road of the engine's, without its checks of owners and
// modes.
#pragma once

#include "hpcbatch/abi.h"

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

namespace hpcbatch::contract {

/// An object of the plugin at `file`; throws std::runtime_error with what the plugin says where it
/// makes none.
template <class Interface>
std::unique_ptr<Interface> load(const std::string& file, const std::string& config_yaml = "") {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  const auto* descriptor =
      static_cast<const hpcbatch_plugin_descriptor*>(::dlsym(library, "hpcbatch_plugin"));
  if (descriptor == nullptr) throw std::runtime_error(file + " exports no hpcbatch_plugin");
  if (descriptor->kind != Interface::kKind) throw std::runtime_error(file + " is of another kind");
  std::array<char, 1024> error{};
  void* object = descriptor->create(config_yaml.c_str(), error.data(), error.size());
  if (object == nullptr) throw std::runtime_error(error.data());
  return std::unique_ptr<Interface>(static_cast<Interface*>(object));
}

}  // namespace hpcbatch::contract
