// Transport `shared_fs`: the site's login node is this machine, its file system is ours.
//
//   environment: {PATH: /opt/slurm/bin:/usr/bin:/bin}   # added to what commands get
#include "files.hpp"

#include "../common/batch_variables.hpp"
#include "../common/process.hpp"

#include "hpcbatch/transport.hpp"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <stdexcept>

#include <sys/wait.h>

namespace hpcbatch {
namespace {

Environment minimal_environment() {
  Environment environment{{"LC_ALL", "C"}, {"PATH", "/usr/local/bin:/usr/bin:/bin"}};
  const auto take = [&environment](const char* name) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  };
  for (const char* name : {"HOME", "PATH", "USER"}) take(name);
  for (const char* name : kBatchVariables) take(name);
  return environment;
}

/// What is wrong with the configuration, and in which line.
std::runtime_error at(const YAML::Node& node, const std::string& what) {
  return std::runtime_error("line " + std::to_string(node.Mark().line + 1) + ": " + what);
}

Environment read_configuration(const char* config_yaml) {
  Environment environment = minimal_environment();
  const YAML::Node config = YAML::Load(config_yaml);
  if (config.IsNull()) return environment;
  if (!config.IsMap()) throw std::runtime_error("the configuration must be a map");
  for (const auto& entry : config) {
    const auto key = entry.first.as<std::string>();
    if (key != "environment")
      throw at(entry.first, "unknown key '" + key + "'; known is: environment");
    if (!entry.second.IsMap())
      throw at(entry.first, "'environment' must be a map of names to values");
    for (const auto& variable : entry.second) {
      if (!variable.second.IsScalar()) {
        throw at(entry.first,
                 "the value of '" + variable.first.as<std::string>() + "' must be a text");
      }
      environment[variable.first.as<std::string>()] = variable.second.Scalar();
    }
  }
  return environment;
}

class SharedFs final : public Transport {
 public:
  explicit SharedFs(const char* config_yaml) : environment_(read_configuration(config_yaml)) {}
  ~SharedFs() override { reap(); }

  Result<CommandOutput> run(const CommandLine& command, Deadline deadline) override {
    reap();
    return run_process(command, environment_of(command), deadline);
  }

  Result<void> put(const std::vector<Copy>& files, Deadline deadline) override {
    for (const Copy& file : files) {
      if (auto copied = copy_whole(file, deadline); !copied) return copied;
    }
    return {};
  }

  Result<void> put_text(const std::vector<FileText>& files, Deadline deadline) override {
    for (const FileText& file : files) {
      if (auto written = write_whole(file, deadline); !written) return written;
    }
    return {};
  }

  Result<void> get(const std::vector<Copy>& files, Deadline deadline) override {
    return put(files, deadline);
  }

  Result<std::string> read(const std::string& path, std::uint64_t offset, std::uint64_t length,
                           Deadline deadline) override {
    return read_part(path, offset, length, deadline);
  }

  Result<std::vector<std::string>> list(const std::string& directory, Deadline) override {
    return names_in(directory);
  }

  Result<void> remove(const std::vector<std::string>& paths, Deadline) override {
    Result<void> all;
    for (const std::string& path : paths) {
      if (auto removed = remove_all(path); !removed) all = removed;
    }
    return all;
  }

  Result<ByteStream> open(const CommandLine& command, Deadline) override {
    reap();
    auto opened = open_process(command, environment_of(command));
    if (!opened) return opened.error();
    talking_.push_back(opened->process);
    return ByteStream{.descriptor = opened->stream.release(), .wants_pump = false};
  }

  void pump(int) override {}

 private:
  Environment environment_of(const CommandLine& command) const {
    Environment environment = environment_;
    for (const auto& [name, value] : command.environment) environment[name] = value;
    return environment;
  }

  /// Programs behind streams end when they like; their statuses are taken whenever we come by.
  void reap() {
    std::erase_if(talking_,
                  [](pid_t process) { return ::waitpid(process, nullptr, WNOHANG) != 0; });
  }

  Environment environment_;
  std::vector<pid_t> talking_;
};

}  // namespace
}  // namespace hpcbatch

HPCBATCH_TRANSPORT(hpcbatch::SharedFs, "shared_fs", "1.0");
