#include "pilot/policy/container_command.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hpcbatch::pilot {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kLength = 32;
struct SaidWord {
  ContainerReport::Said said;
  std::string_view word;
};
constexpr std::array<SaidWord, 4> kWords = {{{ContainerReport::Said::Begun, "begun"},
                                             {ContainerReport::Said::CannotRun, "cannot-run"},
                                             {ContainerReport::Said::Exited, "exited"},
                                             {ContainerReport::Said::Signalled, "signalled"}}};

// What is true of the node, not of the image, and would break its programs.
constexpr std::array<std::string_view, 12> kOfTheNode = {"PATH",
                                                         "LD_LIBRARY_PATH",
                                                         "LD_PRELOAD",
                                                         "HOME",
                                                         "HOSTNAME",
                                                         "PWD",
                                                         "OLDPWD",
                                                         "SHLVL",
                                                         "_",
                                                         "XDG_RUNTIME_DIR",
                                                         "CONTAINER_HOST",
                                                         "DBUS_SESSION_BUS_ADDRESS"};

void add(Words& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

bool is_plain(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool is_passed(const std::string& name, const ContainerPlan& plan) {
  return is_plain(name) && !plan.variables.contains(name) &&
         std::find(kOfTheNode.begin(), kOfTheNode.end(), name) == kOfTheNode.end();
}

std::string taken(const ContainerPlan& plan, const std::string& otherwise) {
  return plan.prepared.empty() ? otherwise : plan.prepared;
}

std::string text_of(const Bind& bind) {
  return bind.from + ":" + bind.to + (bind.read_only ? ":ro" : "");
}

std::string limit_text(const char* name, const SoftAndHard& limit) {
  return std::string(name) + "=" + std::to_string(limit.soft) + ":" + std::to_string(limit.hard);
}

void add_apptainer(Words& words, const ContainerPlan& plan) {
  words.emplace_back(plan.keeps_entrypoint ? "run" : "exec");
  if (plan.gpus == GpuMaker::Nvidia) words.emplace_back("--nv");
  if (plan.gpus == GpuMaker::Amd) words.emplace_back("--rocm");
  // As somebody who is not root they can give no network but an empty one.
  if (!plan.has_network) add(words, {"--net", "--network", "none"});
  for (const Bind& bind : plan.binds)
    add(words, {"--bind", bind.from == bind.to && !bind.read_only ? bind.from : text_of(bind)});
  add(words, {"--pwd", plan.directory, taken(plan, with_transport(plan.image))});
}

/// What Podman and Docker have in common.
void add_run(Words& words, const ContainerPlan& plan, const Words& names) {
  char mask[8];
  std::snprintf(mask, sizeof mask, "%04o", plan.umask & 0777U);
  const bool is_podman = plan.runtime.runtime == Runtime::Podman;
  // Standard error is the task's: what Podman warns of there is nobody's.
  if (is_podman) add(words, {"--log-level", "fatal"});
  // Shared memory as the node has it: what they make themselves is small.
  add(words, {"run", "--rm", "-i", "--name", plan.name, "--pull", "never", "--log-driver", "none",
              "--network", plan.has_network ? "host" : "none", "--volume", "/dev/shm:/dev/shm",
              "--security-opt", "label=disable"});
  if (is_podman) {
    // In no group of its own: the pilot's holds its limits.  Its root is the user outside, whatever
    // user the image names, and needs no range of further users.
    add(words,
        {"--cgroups", "disabled", "--umask", mask, "--user", "0:0", "--ulimit",
         limit_text("nofile", plan.open_files), "--ulimit", limit_text("nproc", plan.processes)});
    if (plan.user != 0) add(words, {"--group-add", "keep-groups"});
  } else {
    add(words, {"--user", std::to_string(plan.user) + ":" + std::to_string(plan.group)});
    if (plan.memory != 0)
      add(words,
          {"--memory", std::to_string(plan.memory), "--memory-swap", std::to_string(plan.memory)});
  }
  if (plan.gpus == GpuMaker::Nvidia && is_podman) add(words, {"--device", "nvidia.com/gpu=all"});
  if (plan.gpus == GpuMaker::Nvidia && !is_podman) add(words, {"--gpus", "all"});
  if (plan.gpus == GpuMaker::Amd) add(words, {"--device", "/dev/kfd"});
  if (plan.gpus == GpuMaker::Amd || plan.gpus == GpuMaker::Intel)
    add(words, {"--device", "/dev/dri"});
  for (const std::string& name : names) {
    if (is_passed(name, plan)) add(words, {"--env", name});
  }
  for (const auto& [name, value] : plan.variables)
    add(words, {"--env", std::string(name).append("=").append(value)});
  for (const Bind& bind : plan.binds) add(words, {"--volume", text_of(bind)});
  add(words, {"--workdir", plan.directory});
  if (!plan.keeps_entrypoint) add(words, {"--entrypoint", ""});
  // A folder is shown as it is; what the task changes in it is the task's alone.
  if (plan.image.kind == ImageKind::Tree) {
    add(words, {"--rootfs", plan.image.place + ":O"});
  } else {
    words.push_back(taken(plan, is_podman ? with_transport(plan.image) : plan.image.place));
  }
}

void add_charliecloud(Words& words, const ContainerPlan& plan) {
  words.emplace_back("--env-no-expand");
  if (plan.has_environment_file) words.emplace_back("--set-env");
  add(words, {"--unset-env=LD_LIBRARY_PATH", "--unset-env=LD_PRELOAD",
              "--set-env=TMPDIR=" + plan.temporary});
  for (const auto& [name, value] : plan.variables)
    words.push_back(std::string("--set-env=").append(name).append("=").append(value));
  for (const Bind& bind : plan.binds)
    words.push_back(std::string("--bind=").append(bind.from).append(":").append(bind.to));
  add(words, {"--cd=" + plan.directory, taken(plan, plan.image.place), "--"});
}

}  // namespace

std::string to_text(const ContainerReport& report) {
  std::string text;
  for (const SaidWord& each : kWords) {
    if (each.said == report.said)
      text = std::string(each.word) + " " + std::to_string(report.value);
  }
  text.resize(kLength - 1, ' ');
  return text + '\n';
}

ContainerReport container_report(const std::string& text) {
  if (text.size() != kLength) return {};
  const std::size_t blank = text.find(' ');
  for (const SaidWord& each : kWords) {
    if (std::string_view(text).substr(0, blank) == each.word)
      return {each.said, std::atoi(text.c_str() + blank)};
  }
  return {};
}

std::vector<std::string> container_argv(const ContainerPlan& plan,
                                        const std::vector<std::string>& command,
                                        const std::vector<std::string>& names) {
  Words words{plan.runtime.program};
  switch (plan.runtime.runtime) {
    case Runtime::Apptainer:
    case Runtime::Singularity:
      add_apptainer(words, plan);
      break;
    case Runtime::Podman:
    case Runtime::Docker:
      add_run(words, plan, names);
      break;
    case Runtime::Charliecloud:
      add_charliecloud(words, plan);
      break;
  }
  if (!plan.keeps_entrypoint) add(words, {plan.inside, "inside", plan.report});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::map<std::string, std::string> runtime_variables(const ContainerPlan& plan) {
  std::map<std::string, std::string> variables;
  switch (plan.runtime.runtime) {
    case Runtime::Apptainer:
    case Runtime::Singularity:
      for (const auto& [name, value] : plan.variables) {
        variables["APPTAINERENV_" + name] = value;
        variables["SINGULARITYENV_" + name] = value;
      }
      break;
    case Runtime::Charliecloud:
      // It shows the container this one's folder as /tmp, below which other binds may have to lie.
      variables["TMPDIR"] = "/tmp";
      break;
    case Runtime::Podman:
    case Runtime::Docker:
      break;
  }
  return variables;
}

std::vector<std::string> removal_argv(const FoundRuntime& runtime, const std::string& name) {
  switch (runtime.runtime) {
    case Runtime::Podman:
      return {runtime.program, "rm", "--force", "--ignore", "--time", "0", name};
    case Runtime::Docker:
      return {runtime.program, "rm", "--force", name};
    case Runtime::Apptainer:
    case Runtime::Singularity:
    case Runtime::Charliecloud:
      return {};
  }
  return {};
}

}  // namespace hpcbatch::pilot
