#include "runtime/model_renewal.hpp"

#include "documents/state_paths.hpp"
#include "posix/replace_file.hpp"
#include "posix/spawn_program.hpp"

#include <spdlog/spdlog.h>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr foresight::Seconds kBetweenTries = foresight::kDay;
constexpr foresight::Seconds kLongestLearned = 400;  // days

/// Written at each try: an engine that starts often does not try often.
std::string stamp_of(const std::string& home, const std::string& site) {
  return wait_model_path(home, site) + ".tried";
}

bool was_tried(const std::string& stamp, foresight::Seconds now) {
  struct ::stat facts {};
  return ::stat(stamp.c_str(), &facts) == 0 && now - facts.st_mtim.tv_sec < kBetweenTries;
}

}  // namespace

bool is_due(foresight::Seconds from, foresight::Seconds until, foresight::Seconds now) {
  return until > 0 && now - until >= std::max(foresight::kDay, (until - from) / 10);
}

bool ModelRenewal::is_running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

void ModelRenewal::consider(const std::string& site, const foresight::WaitModelFacts& facts,
                            Time now) {
  const auto moment = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  const std::string stamp = stamp_of(home_, site);
  if (is_running() || !is_due(facts.from, facts.until, moment) || was_tried(stamp, moment)) return;
  if (replace_file(AT_FDCWD, stamp, "", {.sync = false}) != 0) return;
  std::error_code ignored;
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "hpcbatch-estimate";
  const auto days = std::clamp<foresight::Seconds>(
      (facts.until - facts.from + foresight::kDay - 1) / foresight::kDay, 1, kLongestLearned);
  const boost::json::object asked{
      {"site", site}, {"days", days}, {"estimator", facts.estimator}, {"json", true}};
  const Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const int error =
      spawn_program({"nice", "-n", "19", program.string(), "learn", boost::json::serialize(asked)},
                    {.output = nowhere.get(), .own_group = true}, pid_);
  if (error != 0)
    spdlog::warn("cannot make the model of waits at {} anew: {}", site, std::strerror(error));
  else
    spdlog::info("the model of waits at {} is made anew from the last {} days", site, days);
}

}  // namespace hpcbatch
