#include "pilot/processes/gpu_watch.hpp"

#include "pilot/base/log_line.hpp"
#include "posix/run_in_time.hpp"
#include "posix/spawn_program.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

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
