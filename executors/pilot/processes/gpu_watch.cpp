#include "pilot/processes/gpu_watch.hpp"

#include "pilot/base/log_line.hpp"
#include "posix/programs.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

constexpr std::chrono::seconds kAnswersWithin{30};
constexpr std::chrono::seconds kTestsWithin{65};
constexpr const char* kKernelSeconds = "15";
constexpr std::size_t kLongestLine = std::size_t{1} << 16;

}  // namespace

std::vector<GpuFacts> check_gpus(const std::string& helper, const std::string& test,
                                 std::size_t wanted) {
  if (helper.empty() || wanted == 0) return {};
  std::vector<std::string> argv{helper, "check", kKernelSeconds};
  if (!test.empty()) argv.push_back(test);
  const auto answers_within = test.empty() ? kAnswersWithin : kAnswersWithin + kTestsWithin;
  const auto ran = run_in_time(argv, answers_within);
  std::vector<GpuFacts> gpus;
  if (ran && ran->status == 0) {
    gpus = read_gpu_facts(ran->out);
    if (gpus.empty()) return gpus;
    if (gpus.size() < wanted) gpus.resize(wanted, {"", "", 0, "", "", "it is not there"});
  } else if (ran) {
    // A helper that cannot even start says nothing of the GPUs.
    log_line("the GPUs are not looked at: " + helper + " ends with status " +
             std::to_string(ran->status));
  } else {
    gpus.assign(wanted, {"", "", 0, "", "",
                         "the driver had not answered after " +
                             std::to_string(answers_within.count()) + " s"});
  }
  gpus.resize(std::min(gpus.size(), wanted));
  return gpus;
}

void GpuWatch::start(const std::string& helper, std::vector<GpuFacts> gpus) {
  gpus_ = std::move(gpus);
  bool any = false;
  for (const GpuFacts& facts : gpus_) any = any || (!facts.uuid.empty() && facts.trouble.empty());
  if (!any) return;
  int lines[2], life[2];
  if (::pipe2(lines, O_CLOEXEC) != 0) return;
  lines_ = Fd(lines[0]);
  const Fd writing(lines[1]);
  if (::pipe2(life, O_CLOEXEC) != 0) return;
  const Fd waiting(life[0]);
  life_ = Fd(life[1]);
  ::fcntl(life_.get(), F_SETFL, O_NONBLOCK);
  const int error =
      spawn_program({helper, "watch"},
                    {.input = waiting.get(), .output = writing.get(), .own_group = true}, pid_);
  if (error != 0) {
    log_line("the GPUs are not watched: cannot run " + helper + ": " + std::strerror(error));
    return;
  }
  started_(pid_);
  ::fcntl(lines_.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(lines_.get(), EPOLLIN, [this](std::uint32_t) { read(); });
}

void GpuWatch::read() {
  char bytes[8192];
  ssize_t count = 0;
  while ((count = ::read(lines_.get(), bytes, sizeof bytes)) > 0)
    rest_.append(bytes, static_cast<std::size_t>(count));
  const bool is_over = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
  for (std::size_t end = 0; (end = rest_.find('\n')) != std::string::npos;) {
    const auto seen = read_gpu_seen(std::string_view(rest_).substr(0, end), gpus_);
    rest_.erase(0, end + 1);
    if (seen) seen_(*seen);
  }
  if (rest_.size() > kLongestLine) rest_.clear();
  if (is_over) stop();
}

bool GpuWatch::look_now() const {
  return life_ && ::write(life_.get(), "", 1) == 1;
}

void GpuWatch::stop() {
  if (lines_) loop_.forget(lines_.get());
  lines_.reset();
  life_.reset();
}

bool GpuWatch::reaped(pid_t pid) {
  if (pid != pid_) return false;
  log_line("the GPUs are watched no more: their helper has ended");
  stop();
  pid_ = -1;
  return true;
}

}  // namespace hpcbatch::pilot

extern "C" char** environ;

namespace hpcbatch::pilot {
namespace {

constexpr std::int64_t kWholeGpu = 10'000;
constexpr int kStepMs = 20;
constexpr int kMostSteps = 250;
// Volta: of those before it clients have no memory and no faults of their own.
constexpr double kLeastCapability = 7.0;

// It ends when its input does, and says so first to the servers that it has started.
constexpr const char* kScript =
    "exec 3<&0; nvidia-cuda-mps-control -f >/dev/null 2>&1 & p=$!; "
    "(read _ <&3; echo quit -t 5 | nvidia-cuda-mps-control; kill $p) >/dev/null 2>&1 & "
    "exec 3<&-; wait $p";

bool may_share(const GpuFacts& gpu) {
  return gpu.trouble.empty() && gpu.uuid.starts_with("GPU-") &&
         std::strtod(gpu.capability.c_str(), nullptr) >= kLeastCapability;
}

std::vector<std::string> environment_of(const std::string& folder, const std::string& devices) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text(*line);
    if (!text.starts_with("CUDA_VISIBLE_DEVICES=") && !text.starts_with("CUDA_MPS_"))
      lines.emplace_back(text);
  }
  lines.push_back("CUDA_VISIBLE_DEVICES=" + devices);
  lines.push_back("CUDA_MPS_PIPE_DIRECTORY=" + folder);
  lines.push_back("CUDA_MPS_LOG_DIRECTORY=" + folder);
  return lines;
}

bool is_there_soon(const std::string& socket) {
  struct stat info {};
  for (int step = 0; step < kMostSteps; ++step) {
    if (::stat(socket.c_str(), &info) == 0) return true;
    ::poll(nullptr, 0, kStepMs);
  }
  return false;
}

}  // namespace

void GpuSharing::start(const std::string& folder, const std::vector<GpuFacts>& gpus) {
  std::string devices;
  for (const GpuFacts& gpu : gpus) {
    if (may_share(gpu)) devices += (devices.empty() ? "" : ",") + gpu.uuid;
  }
  if (devices.empty()) {
    log_line("GPUs are shared in turns: none is known that can be shared side by side");
    return;
  }
  int life[2];
  if (::mkdir(folder.c_str(), 0700) != 0 || ::pipe2(life, O_CLOEXEC) != 0) {
    log_line("GPUs are shared in turns: cannot make " + folder + ": " + std::strerror(errno));
    return;
  }
  const Fd waiting(life[0]);
  life_ = Fd(life[1]);
  const std::vector<std::string> environment = environment_of(folder, devices);
  const int error =
      spawn_program({"/bin/sh", "-c", kScript},
                    {.environment = &environment, .input = waiting.get(), .own_group = true}, pid_);
  if (error == 0) started_(pid_);
  if (error != 0 || !is_there_soon(folder + "/control")) {
    log_line("GPUs are shared in turns: nvidia-cuda-mps-control does not answer");
    life_.reset();
    pid_ = -1;
    return;
  }
  gpus_ = gpus;
  folder_ = folder;
  log_line("GPUs are shared side by side, by nvidia-cuda-mps-control");
}

void GpuSharing::add_to(std::map<std::string, std::string>& variables,
                        const std::vector<unsigned>& gpus, std::int64_t part) const {
  if (!is_on() || gpus.size() != 1 || part <= 0 || part >= kWholeGpu) return;
  if (gpus.front() >= gpus_.size() || !may_share(gpus_[gpus.front()])) return;
  const GpuFacts& gpu = gpus_[gpus.front()];
  // By numbers it would be one of the service's devices, which are not the node's.
  variables["CUDA_VISIBLE_DEVICES"] = gpu.uuid;
  variables["CUDA_MPS_PIPE_DIRECTORY"] = folder_;
  variables["CUDA_MPS_LOG_DIRECTORY"] = folder_;
  variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] =
      std::to_string(std::max<std::int64_t>(1, 100 * part / kWholeGpu));
  if (gpu.memory == 0) return;
  const std::uint64_t mebibytes =
      (gpu.memory >> 20) * static_cast<std::uint64_t>(part) / static_cast<std::uint64_t>(kWholeGpu);
  variables["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=" + std::to_string(mebibytes) + "M";
}

void GpuSharing::stop() {
  if (!is_on()) return;
  life_.reset();
  siginfo_t info{};
  for (int step = 0; step < kMostSteps && info.si_pid == 0; ++step) {
    if (step > 0) ::poll(nullptr, 0, kStepMs);
    // Left unreaped, so that its group is still its own.
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
  }
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool GpuSharing::reaped(pid_t pid) {
  if (pid_ <= 0 || pid != pid_) return false;
  log_line("GPUs are shared in turns from now on: nvidia-cuda-mps-control has ended");
  life_.reset();
  pid_ = -1;
  return true;
}

}  // namespace hpcbatch::pilot
