// Transport `shared_fs`: the site's login node is this machine, its file system is ours.
//
//   environment: {PATH: /opt/slurm/bin:/usr/bin:/bin}   # added to what commands get
#include "../common/process.hpp"

#include "hpcbatch/own_commands.hpp"
#include "hpcbatch/transport.hpp"

#include <cstdlib>

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

Environment read_configuration(const char* config_yaml) {
  Environment environment = minimal_environment();
  for (auto& [name, value] : read_environment(Keys(config_yaml, {"environment"})))
    environment[name] = std::move(value);
  // The user who started the engine may have our own sbatch first in PATH; ours would come back here.
  environment["PATH"] = without_own_commands(environment["PATH"]);
  for (const char* name : {kRealCommands, kRealPbsCommands}) environment[name] = "1";
  return environment;
}

class SharedFs final : public Transport, public SharedFileSystem {
 public:
  explicit SharedFs(const char* config_yaml) : environment_(read_configuration(config_yaml)) {}
  ~SharedFs() override { reap(); }

  Result<CommandOutput> run(const CommandLine& command, Deadline deadline) override {
    reap();
    return run_process(command, environment_of(command), deadline);
  }

  Result<int> open(const CommandLine& command, Deadline) override {
    reap();
    auto opened = open_process(command, environment_of(command));
    if (!opened) return opened.error();
    talking_.push_back(opened->process);
    return opened->stream.release();
  }

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

HPCBATCH_TRANSPORT(hpcbatch::SharedFs, "shared_fs", "2.0");
