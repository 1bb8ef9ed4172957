#include "cli/process/process.hpp"

#include "documents/texts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <pwd.h>
#include <sodium.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {

Interrupt::Interrupt() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    // Under nohup, or in the background of a script, the parent has decided that this signal means
    // nothing to us.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(&wanted, number);
  }
  pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  descriptor_ = Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

Interrupt::~Interrupt() {
  let_through();
}

void Interrupt::let_through() const {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Interrupt::take() {
  signalfd_siginfo what{};
  if (::read(descriptor_.get(), &what, sizeof what) != sizeof what) return 0;
  return static_cast<int>(what.ssi_signo);
}

void Interrupt::pause(std::chrono::milliseconds time) const {
  pollfd signals{descriptor_.get(), POLLIN, 0};
  if (::poll(&signals, 1, static_cast<int>(time.count())) > 0) throw InterruptedByUser{};
}

SlowNote::SlowNote(std::string text, std::chrono::milliseconds patience, Tell tell,
                   std::optional<std::chrono::milliseconds> every) {
  auto wait = [text = std::move(text), patience, tell = std::move(tell),
               every](const std::stop_token& over) {
    try {
      std::mutex mutex;
      std::condition_variable_any ends;
      std::unique_lock lock(mutex);
      std::optional<std::chrono::milliseconds> pause = patience;
      while (pause) {
        ends.wait_for(lock, over, *pause, [] { return false; });
        if (over.stop_requested()) return;
        tell(text);
        pause = every;
      }
    } catch (const std::bad_alloc&) {
      // As without a thread.
    }
  };
  try {
    thread_ = std::jthread(std::move(wait));
  } catch (const std::system_error&) {
    // Where there are no threads to be had, the step goes on without.
  }
}

void SlowNote::on_standard_error(const std::string& text) {
  std::fprintf(stderr, "hpcbatch: waits for %s\n", text.c_str());
}

}  // namespace hpcbatch

extern char** environ;

namespace hpcbatch {
namespace {

/// Changes from shell to shell and means nothing elsewhere; without these, a user's submits share
/// one stored environment.
constexpr std::array<std::string_view, 3> kShells{"_", "SHLVL", "OLDPWD"};

/// What a pilot gives to each task of its own.
constexpr std::array<std::string_view, 23> kPilots{
    "TMPDIR",           "HPCBATCH_TASK_ID",      "HPCBATCH_TASK_INDEX",   "HPCBATCH_ATTEMPT",
    "HPCBATCH_CPUS",    "HPCBATCH_MEM_MB",       "HPCBATCH_GPUS",         "HPCBATCH_GPU_KIND",
    "HPCBATCH_METRICS", "HPCBATCH_PILOT",        "HPCBATCH_SITE",         "PWD",
    "HPCBATCH_SCRIPT",  "HPCBATCH_BATCH_NUMBER", "HPCBATCH_DEADLINE",     "HPCBATCH_SERVICE",
    "HPCBATCH_NODES",   "HPCBATCH_NODE_RUN",     "HPCBATCH_NODES_FOLDER", "HPCBATCH_NODE_INDEX",
    "HPCBATCH_NTASKS",  "HPCBATCH_RANK",         "HPCBATCH_RANKS"};

/// Only where the caller itself is a task; else they are the user's own settings.
constexpr std::array<std::string_view, 5> kPilotsIfTask{"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES",
                                                        "ROCR_VISIBLE_DEVICES",
                                                        "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};

/// What begins so is told to a task over several nodes (pilot/nodes/task_nodes.cpp), or to its ranks by
/// what has started them: it would lead another one to nodes that are not its own.
constexpr std::array<std::string_view, 13> kOfNodes{"SLURM_",
                                                    "PBS_NODEFILE",
                                                    "OMPI_MCA_plm",
                                                    "OMPI_MCA_ras",
                                                    "OMPI_MCA_orte_",
                                                    "OMPI_MCA_hwloc_base_binding_policy",
                                                    "OMPI_COMM_WORLD_",
                                                    "PRTE_MCA_",
                                                    "HYDRA_",
                                                    "I_MPI_HYDRA_",
                                                    "I_MPI_PIN",
                                                    "PMI_",
                                                    "PMIX_"};

template <std::size_t Size>
bool is_among(const std::array<std::string_view, Size>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What starts a parallel program sets these for each of its processes.
bool is_launchers(std::string_view name) {
  return name.starts_with("PMI_") || name.starts_with("PMIX_") || name.starts_with("PALS_");
}

/// A batch job's own variables; SLURM_CONF and settings such as SBATCH_ACCOUNT are the user's, and
/// outside of a batch job all are.
bool is_batch_jobs(std::string_view name, const EnvironmentMap& environment) {
  if (name.starts_with("SLURM_") || name.starts_with("SLURMD_")) {
    return environment.contains("SLURM_JOB_ID") && name != "SLURM_CONF";
  }
  const bool in_pbs = environment.contains("PBS_JOBID");
  if (name == "ENVIRONMENT")
    return (in_pbs || environment.contains("SLURM_JOB_ID")) &&
           environment.at("ENVIRONMENT") == "BATCH";
  if (name.starts_with("PBS_") || name == "NCPUS") return in_pbs;
  return is_launchers(name) && (in_pbs || environment.contains("SLURM_STEP_ID"));
}

bool is_of_nodes(std::string_view name, const EnvironmentMap& environment) {
  return environment.contains("HPCBATCH_NODES_FOLDER") && name != "SLURM_CONF" &&
         std::any_of(kOfNodes.begin(), kOfNodes.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

/// The path by which the user came here, where the kernel calls the folder otherwise: as `pwd` does
/// it, whatever a program that has changed its folder says is not believed.
std::optional<std::string> path_here(const EnvironmentMap& environment,
                                     const std::string& directory) {
  const auto said = environment.find("PWD");
  if (said == environment.end() || !said->second.starts_with('/') || said->second == directory)
    return std::nullopt;
  std::error_code error;
  if (!std::filesystem::equivalent(said->second, directory, error)) return std::nullopt;
  return said->second;
}

}  // namespace

EnvironmentMap own_environment() {
  EnvironmentMap environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

EnvironmentMap handed_on(const EnvironmentMap& environment) {
  const bool is_task = environment.contains("HPCBATCH_TASK_ID");
  EnvironmentMap out;
  for (const auto& [name, value] : environment) {
    if (is_among(kShells, name) || is_among(kPilots, name) || is_batch_jobs(name, environment) ||
        is_of_nodes(name, environment))
      continue;
    if (is_task && is_among(kPilotsIfTask, name)) continue;
    out.emplace(name, value);
  }
  return out;
}

bool is_of_any_program(std::string_view name) {
  constexpr std::array<std::string_view, 8> kAny{"HOME", "PATH",   "USER",     "LOGNAME",
                                                 "LANG", "LC_ALL", "LANGUAGE", "SHELL"};
  return is_among(kAny, name);
}

std::optional<OwnTask> own_task(const EnvironmentMap& environment) {
  const auto task = environment.find("HPCBATCH_TASK_ID");
  const auto pilot = environment.find("HPCBATCH_PILOT");
  if (task == environment.end() || pilot == environment.end()) return std::nullopt;
  return OwnTask{task->second, pilot->second};
}

std::uint32_t own_umask() {
  const mode_t mask = ::umask(077);  // it can only be asked for by being set
  ::umask(mask);
  return mask;
}

Surroundings look_around() {
  Surroundings around;
  std::error_code error;
  around.directory = std::filesystem::current_path(error).string();
  if (error) {
    throw CommandError(kExitUsage, "cannot tell the current directory: " + error.message() +
                                       "; change to one that exists");
  }
  around.umask = own_umask();
  const EnvironmentMap environment = own_environment();
  around.within = own_task(environment);
  around.environment = handed_on(environment);
  if (const auto path = path_here(environment, around.directory)) around.environment["PWD"] = *path;
  return around;
}

std::string client_name() {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> names(65'536);
  if (::getpwuid_r(::getuid(), &entry, names.data(), names.size(), &found) == 0 && found != nullptr)
    names.assign(found->pw_name, found->pw_name + std::strlen(found->pw_name) + 1);
  else
    names.assign(1, '\0');
  // Of one who is in no list of users here, as in many containers.
  for (const char* name :
       {static_cast<const char*>(names.data()), static_cast<const char*>(std::getenv("USER")),
        static_cast<const char*>(std::getenv("LOGNAME"))}) {
    if (name != nullptr && *name != '\0' && !find_invalid_utf8(name))
      return std::string("shell:") + name;
  }
  return "shell:" + std::to_string(::getuid());
}

}  // namespace hpcbatch

namespace hpcbatch {

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    return std::nullopt;
  bytes.resize(size);
  return bytes;
}

}  // namespace hpcbatch
