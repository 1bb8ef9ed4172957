// Steps of one task that run side by side: who has which of its cpus and GPUs.
#include "slurm_commands/step.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace hpcbatch::slurm_commands {
namespace {

std::string listed(const Shares& shares) {
  std::string text;
  for (const unsigned one : shares) text.append(std::to_string(one)).append(",");
  return text;
}

void take_out(std::vector<bool>& free, std::string_view list) {
  for (const std::string& word : split_at(list, ',')) {
    std::size_t one = free.size();
    std::from_chars(word.data(), word.data() + word.size(), one);
    if (one < free.size()) free[one] = false;
  }
}

/// The first `count` that are free; nothing: there are fewer.
std::optional<Shares> first_free(const std::vector<bool>& free, unsigned count) {
  Shares found;
  for (unsigned i = 0; i < free.size() && found.size() < count; ++i) {
    if (free[i]) found.push_back(i);
  }
  return found.size() < count ? std::nullopt : std::optional(found);
}

Fd open_file(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
}

std::string text_of(int file) {
  char text[65'536];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace

StepShares::StepShares(const std::string& folder, unsigned cpus, unsigned gpus)
    : folder_(folder), cpus_(cpus), gpus_(gpus) {
  std::error_code error;
  if (!folder_.empty() && !std::filesystem::create_directories(folder_, error) && error)
    folder_.clear();
}

void StepShares::take_out_what_is_held(std::vector<bool>& cpus, std::vector<bool>& gpus) const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (entry.path().filename() == "next") continue;
    const Fd file = open_file(entry.path());
    if (!file) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      // Its step has ended.
      ::unlink(entry.path().c_str());
      continue;
    }
    const std::string text = text_of(file.get());
    const std::size_t line = std::min(text.find('\n'), text.size());
    take_out(cpus, std::string_view(text).substr(0, line));
    take_out(gpus, std::string_view(text).substr(std::min(line + 1, text.size())));
  }
}

unsigned StepShares::next_step() const {
  const Fd file = open_file(folder_ + "/next");
  unsigned step = 0;
  const std::string text = text_of(file.get());
  std::from_chars(text.data(), text.data() + text.size(), step);
  const std::string after = std::to_string(step + 1);
  if (::pwrite(file.get(), after.data(), after.size(), 0) < 0) return step;
  return step;
}

std::optional<HeldShare> StepShares::try_to_hold(unsigned cpus, unsigned gpus, bool counts) {
  std::vector<bool> free_cpus(cpus_, true), free_gpus(gpus_, true);
  HeldShare held;
  const Fd lock = folder_.empty() ? Fd() : open_file(folder_ + "/next");
  if (lock && ::flock(lock.get(), LOCK_EX) == 0 && counts)
    take_out_what_is_held(free_cpus, free_gpus);
  auto own_cpus = first_free(free_cpus, cpus), own_gpus = first_free(free_gpus, gpus);
  if (!own_cpus || !own_gpus) return std::nullopt;
  held.cpus = std::move(*own_cpus);
  held.gpus = std::move(*own_gpus);
  if (!lock) return held;
  held.step = next_step();
  if (!counts) return held;
  held.file_ = open_file(folder_ + "/" + std::to_string(held.step));
  if (!held.file_) return held;
  ::flock(held.file_.get(), LOCK_EX | LOCK_NB);
  write_all(held.file_.get(), listed(held.cpus) + "\n" + listed(held.gpus) + "\n");
  return held;
}

}  // namespace hpcbatch::slurm_commands
