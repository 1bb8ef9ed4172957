// The words with which each container runtime is started, so that a task in a container has the
// folders, streams, limits, signals and user that it would have without one.
#pragma once

#include "pilot/policy/container_choice.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// What a process of ours in the container leaves behind about the task's program, so that its end
/// is known as exactly as that of a program outside of one.
struct ContainerReport {
  enum class Said { Nothing, Begun, CannotRun, Exited, Signalled };
  Said said{Said::Nothing};
  int value{0};  // errno, exit code or signal
};

struct ContainerEnd {
  std::string runtime;  // its name
  bool reports{false};  // else only the runtime's exit code is known
  ContainerReport report;
};

/// Always as long, so that the end finds room where the begin had it.
std::string to_text(const ContainerReport& report);
ContainerReport container_report(const std::string& text);

enum class GpuMaker { None, Nvidia, Amd, Intel };

struct Bind {
  std::string from;
  std::string to;
  bool read_only{false};
};

struct SoftAndHard {
  std::uint64_t soft{};
  std::uint64_t hard{};
};

struct ContainerPlan {
  FoundRuntime runtime;
  Image image;
  std::string prepared;   // file, folder or number in place of the image; empty: it runs as it is
  std::string name;       // of the container, this attempt's alone
  std::string directory;  // where the task runs
  std::vector<Bind> binds;
  std::map<std::string, std::string> variables;  // over the task's own
  bool has_network{true};
  bool keeps_entrypoint{false};
  bool has_environment_file{false};  // of the image, as Charliecloud keeps it
  GpuMaker gpus{GpuMaker::None};
  unsigned umask{};
  SoftAndHard open_files, processes;
  unsigned user{}, group{};  // the pilot's
  std::uint64_t memory{};    // bytes, a limit; 0: none
  std::string temporary;     // TMPDIR
  // Our program and the file that it reports to, both bound; it runs the task's command inside.
  // Not where the image's entrypoint is kept.
  std::string inside, report;
};

/// `names` are those of the task's variables.
std::vector<std::string> container_argv(const ContainerPlan& plan,
                                        const std::vector<std::string>& command,
                                        const std::vector<std::string>& names);

/// What the runtime's own process is to have over the task's variables; an empty value is as none.
std::map<std::string, std::string> runtime_variables(const ContainerPlan& plan);

/// Removes what a runtime that was killed has left; empty: it leaves nothing.
std::vector<std::string> removal_argv(const FoundRuntime& runtime, const std::string& name);

}  // namespace hpcbatch::pilot
