#include "runtime/learned_waits.hpp"

#include "documents/state_paths.hpp"
#include "plugin_host/guarded.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// Whoever replaces a file makes another.
bool is_same(const struct ::stat& one, const struct ::stat& other) {
  return one.st_ino == other.st_ino && one.st_dev == other.st_dev && one.st_size == other.st_size &&
         one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

std::unique_ptr<foresight::WaitModel> load(const PluginHost& plugins, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) throw std::invalid_argument("it cannot be read");
  foresight::WaitModelFile read = foresight::wait_model_file(bytes);
  const auto estimator = plugins.estimator(read.facts.estimator, read.facts.config_yaml);
  if (!estimator) throw std::invalid_argument(estimator.error().text);
  auto model = guarded("estimator", [&] { return (*estimator)->load(read.model); });
  if (!model) throw std::invalid_argument(model.error().text);
  return std::make_unique<foresight::WaitModel>(std::move(read.facts), std::move(*model));
}

}  // namespace

void LearnedWaits::read_file() {
  struct ::stat now {};
  if (::stat(file_.c_str(), &now) != 0) {
    read_.reset();
    model_.reset();
    trouble_.clear();
    return;
  }
  if (read_ && is_same(*read_, now)) return;
  read_ = now;
  model_.reset();
  trouble_.clear();
  try {
    model_ = load(plugins_, file_);
  } catch (const std::exception& error) {
    set_trouble(error.what());
  }
}

void LearnedWaits::set_trouble(std::string_view why) {
  trouble_ = fmt::format("the model {} is not used: {}; 'hpcbatch waits train' makes a new one",
                         file_, why);
}

void LearnedWaits::see(const WatchedQueue& queue, const WatchedRoom& room,
                       const std::set<std::string>& ours, foresight::Seconds now) {
  read_file();
  if (!model_) return;
  now_ = now;
  partitions_ = model_->partitions();
  foresight::Numbers users;
  present_ = foresight::present_in(queue, room, partitions_, users, now);
  const auto own = std::find_if(queue.jobs.begin(), queue.jobs.end(),
                                [&](const WatchedJob& job) { return ours.contains(job.name); });
  // Of one who has nothing there it knows as much.
  user_ = own == queue.jobs.end() ? users.of("\n") : users.of(own->user);
  const auto partition = std::find_if(queue.partitions.begin(), queue.partitions.end(),
                                      [](const WatchedPartition& one) { return one.is_default; });
  default_partition_ = partition == queue.partitions.end() ? "" : partition->name;
}

std::vector<foresight::Seconds> LearnedWaits::waits(const Asked& asked) {
  if (!model_) return {};
  foresight::Numbers partitions = partitions_;
  const foresight::AskedJob job{
      .partition = partitions.of(asked.partition.empty() ? default_partition_ : asked.partition),
      .user = user_,
      .cpus = asked.cpus,
      .gpus = asked.gpus,
      .limit = asked.limit};
  auto waits = guarded("estimator", [&] { return model_->waits(job, present_, now_); });
  if (waits) return std::move(*waits);
  set_trouble(waits.error().text);
  return {};
}

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
