// Finds plugins by name, checks them before and after they are mapped, and makes their objects.
#pragma once

#include "hpcbatch/estimator.hpp"
#include "hpcbatch/result.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/tool.hpp"
#include "hpcbatch/transport.hpp"
#include "plugin_host/search_path.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// What a plugin says of itself.
struct PluginFacts {
  std::filesystem::path path;
  hpcbatch_plugin_kind kind{};
  std::string name;
  std::string version;
  std::string fingerprint;
};

/// Loads on demand; nothing is mapped to be listed and nothing is ever unmapped.  Errors are one
/// sentence with the path and what to do.  Holds no state but the search path, so any thread may
/// call it.
class PluginHost {
 public:
  /// Directories with `schedulers`, `transports`, `tools` and `estimators` in them; the first that has a name
  /// wins.
  explicit PluginHost(std::vector<std::filesystem::path> search) : search_(std::move(search)) {}

  Result<std::unique_ptr<Scheduler>> scheduler(const std::string& name,
                                               const std::string& config_yaml) const {
    return make<Scheduler>(name, config_yaml);
  }
  Result<std::unique_ptr<Transport>> transport(const std::string& name,
                                               const std::string& config_yaml) const {
    return make<Transport>(name, config_yaml);
  }
  Result<std::unique_ptr<Tool>> tool(const std::string& name,
                                     const std::string& config_yaml) const {
    return make<Tool>(name, config_yaml);
  }
  Result<std::unique_ptr<Estimator>> estimator(const std::string& name,
                                               const std::string& config_yaml) const {
    return make<Estimator>(name, config_yaml);
  }

  std::vector<PluginFile> available(hpcbatch_plugin_kind kind) const {
    return find_plugins(search_, kind);
  }

  /// Does with a file what loading does, and says what it is.
  static Result<PluginFacts> check(const std::filesystem::path& file);

 private:
  template <class Interface>
  Result<std::unique_ptr<Interface>> make(const std::string& name,
                                          const std::string& config_yaml) const {
    auto made = create(Interface::kKind, name, config_yaml);
    if (!made) return made.error();
    return std::unique_ptr<Interface>(static_cast<Interface*>(*made));
  }
  /// The object's pointer is one to the interface of `kind`, which has been compared with what the
  /// plugin says.
  Result<void*> create(hpcbatch_plugin_kind kind, const std::string& name,
                       const std::string& config_yaml) const;

  std::vector<std::filesystem::path> search_;
};

}  // namespace hpcbatch
