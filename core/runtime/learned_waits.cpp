#include "runtime/learned_waits.hpp"

#include "plugin_host/guarded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

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

}  // namespace hpcbatch
