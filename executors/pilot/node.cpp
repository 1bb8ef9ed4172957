#include "pilot/node.hpp"

#include "pilot/base/log_line.hpp"
#include "pilot/processes/gpu_watch.hpp"
#include "wire/whole_file.hpp"

#include <cctype>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

constexpr std::string_view kScratchPrefix = "hpcbatch-pilot-";
constexpr time_t kYoung = 60;  // its pilot may be about to lock it

std::vector<unsigned> allowed_cpus() {
  std::vector<unsigned> cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

/// Devices of NVIDIA are counted; those of others are there or not.
struct DeviceFiles {
  std::size_t nvidia{0};
  bool others{false};
};

DeviceFiles device_files() {
  DeviceFiles found;
  const auto each = [](const char* folder, const auto& look) {
    DIR* dir = ::opendir(folder);
    if (dir == nullptr) return;
    while (const dirent* entry = ::readdir(dir)) look(std::string_view(entry->d_name));
    ::closedir(dir);
  };
  each("/dev", [&found](std::string_view name) {
    const bool numbered = name.starts_with("nvidia") && name.size() > 6 &&
                          std::isdigit(static_cast<unsigned char>(name[6])) != 0;
    if (numbered) ++found.nvidia;
    if (name == "kfd") found.others = true;
  });
  each("/dev/dri", [&found](std::string_view name) {
    if (name.starts_with("renderD")) found.others = true;
  });
  return found;
}

std::string make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return "cannot make " + path + ": " + std::strerror(errno);
}

void check_workspace(Node& node, const wire::PilotFile& file, const std::string& pilot) {
  for (const char* folder : {"/logs", "/outbox", "/work"}) {
    if (const std::string why = make_folder(file.workspace + folder); !why.empty()) {
      node.refusals.push_back("workspace: " + why);
      return;
    }
  }
  if (const std::string why = check_writing(file.workspace + "/outbox", pilot); !why.empty()) {
    node.refusals.push_back("workspace: " + why);
  }
}

void make_scratch(Node& node, const wire::PilotFile& file, const std::string& pilot) {
  for (int attempt = 0; node.scratch.empty() && attempt < 10; ++attempt) {
    std::string path = file.scratch + "/" + std::string(kScratchPrefix) + pilot + "-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) break;
    node.scratch_lock = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Between the two calls somebody may take it for a left-over one and remove it.  A file system
    // without locks tells nobody that one is left over.
    const bool locked =
        node.scratch_lock &&
        (::flock(node.scratch_lock.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    if (locked && ::access(path.c_str(), F_OK) == 0) node.scratch = path;
  }
  if (node.scratch.empty()) {
    node.refusals.push_back("scratch: cannot make a directory in " + file.scratch + ": " +
                            std::strerror(errno));
    return;
  }
  if (const std::string why = check_writing(node.scratch, pilot); !why.empty())
    node.refusals.push_back("scratch: " + why);
}

void check_devices(Node& node, std::size_t wanted) {
  if (wanted == 0) return;
  const auto refuse = [&node, wanted](std::size_t visible, const std::string& where) {
    node.refusals.push_back("gpu: " + std::to_string(wanted) + " were asked for, " +
                            std::to_string(visible) + " are " + where);
  };
  if (const auto shown = node.devices.shown()) {
    if (*shown < wanted) refuse(*shown, "in " + node.devices.variable());
    return;
  }
  if (!node.gpus.empty()) return;
  const DeviceFiles files = device_files();
  if (files.nvidia == 0 && files.others) return;
  if (files.nvidia < wanted)
    refuse(files.nvidia, "there as /dev/nvidia*, and none of other makers");
}

/// One that is broken is set aside alone; where all are, this node is of no use.
void look_at_gpus(Node& node, const wire::PilotFile& file, std::size_t wanted) {
  node.gpus = check_gpus(file.gpu_helper, file.gpu_test, wanted);
  std::size_t broken = 0;
  for (const GpuFacts& facts : node.gpus) broken += facts.trouble.empty() ? 0 : 1;
  if (node.gpus.empty() || broken < wanted) return;
  node.refusals.push_back("gpu: " + std::string(wanted == 1 ? "" : "all are broken; the first: ") +
                          node.gpus.front().trouble);
}

/// As SLURM calls the node (srun(1), SLURMD_NODENAME), which several may share a host, else the
/// host's.
std::string node_name() {
  if (const char* name = std::getenv("SLURMD_NODENAME"); name != nullptr && *name != '\0')
    return name;
  char host[HOST_NAME_MAX + 1] = {};
  ::gethostname(host, sizeof host - 1);
  return host;
}

}  // namespace

Node look_at_node(const wire::PilotFile& file, const std::string& pilot) {
  std::size_t devices = 0;
  std::int64_t cpus = 0;
  for (const auto& [name, amount] : file.capacity) {
    if (name == "cpus") cpus = amount;
    if (name == "gpus" || name.starts_with("gpus/"))
      devices += static_cast<std::size_t>(amount / kWhole);
  }
  Node node{node_name(), allowed_cpus(), Devices(static_cast<unsigned>(devices), environ),
            {},          Fd(),           {},
            {}};
  if (static_cast<std::int64_t>(node.cpus.size()) * kWhole != cpus) node.cpus.clear();
  check_workspace(node, file, pilot);
  make_scratch(node, file, pilot);
  if (node.refusals.empty()) look_at_gpus(node, file, devices);
  check_devices(node, devices);
  return node;
}

std::vector<std::string> left_over_scratch(const std::string& base) {
  std::vector<std::string> paths;
  DIR* dir = ::opendir(base.c_str());
  if (dir == nullptr) return paths;
  while (const dirent* entry = ::readdir(dir)) {
    if (!std::string_view(entry->d_name).starts_with(kScratchPrefix)) continue;
    const std::string path = base + "/" + entry->d_name;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    const bool left = fd && ::fstat(fd.get(), &info) == 0 && info.st_uid == ::geteuid() &&
                      info.st_mtim.tv_sec + kYoung < ::time(nullptr) &&
                      ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
    if (left) paths.push_back(path);
  }
  ::closedir(dir);
  return paths;
}

namespace {

constexpr Duration kTryAgain = std::chrono::seconds{1};
constexpr Duration kHopelessAfter = std::chrono::minutes{10};
// What fails again so soon after a small file could be written has not been well in between.
constexpr Duration kRelapse = std::chrono::minutes{1};
constexpr std::size_t kBlock = 4096;

}  // namespace

std::string check_writing(const std::string& folder, const std::string& pilot) {
  const std::string path = folder + "/." + pilot + ".check";
  const auto written = wire::replace_file(path, std::string(kBlock, '.'), wire::Readers::OwnerOnly);
  ::unlink(path.c_str());
  return written ? std::string() : written.error().text;
}

void WorkspaceWatch::failed(std::string why, Time now) {
  if (trouble_.empty()) {
    log_line("the workspace is in trouble: " + why);
    if (!well_since_ || now > *well_since_ + kRelapse) failing_since_ = now;
  }
  trouble_ = std::move(why);
  look_at_ = now + kTryAgain;
}

bool WorkspaceWatch::is_hopeless(Time now) const {
  return !trouble_.empty() && now >= failing_since_ + kHopelessAfter;
}

void WorkspaceWatch::tick(Time now) {
  if (!look_at_ || now < *look_at_) return;
  std::string why = check_writing(workspace_ + "/work", pilot_);
  if (!why.empty()) return failed(std::move(why), now);
  log_line("the workspace can be written again");
  trouble_.clear();
  well_since_ = now;
  look_at_.reset();
}

}  // namespace hpcbatch::pilot
