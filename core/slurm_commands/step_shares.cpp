// Steps of one task that run side by side: who has which of its cpus and GPUs.
#include "slurm_commands/step.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>

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
    const std::size_t one = number_in<std::size_t>(word).value_or(free.size());
    if (one < free.size()) free[one] = false;
  }
}

/// The first `count` that are free of those of one node; nothing: there are fewer.
std::optional<Shares> first_free(const std::vector<bool>& free, unsigned node, unsigned of_node,
                                 unsigned count) {
  Shares found;
  for (unsigned i = node * of_node; i < (node + 1) * of_node && found.size() < count; ++i) {
    if (free[i]) found.push_back(i);
  }
  return found.size() < count ? std::nullopt : std::optional(found);
}

void append(Shares& all, const Shares& more) {
  all.insert(all.end(), more.begin(), more.end());
}

Shares below(const Shares& all, unsigned end) {
  Shares some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](unsigned one) { return one < end; });
  return some;
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

StepShares::StepShares(const std::string& folder, unsigned cpus, unsigned gpus, unsigned nodes)
    : folder_(folder), cpus_(cpus), gpus_(gpus), nodes_(nodes) {
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
  const unsigned step = number_in<unsigned>(text_of(file.get())).value_or(0);
  const std::string after = std::to_string(step + 1);
  if (::pwrite(file.get(), after.data(), after.size(), 0) < 0) return step;
  return step;
}

std::optional<HeldShare> StepShares::try_to_hold(const std::vector<Wanted>& wanted, bool counts,
                                                 const Shares& on_nodes) {
  std::vector<bool> free_cpus(std::size_t{cpus_} * nodes_, true);
  std::vector<bool> free_gpus(std::size_t{gpus_} * nodes_, true);
  HeldShare held;
  const Fd lock = folder_.empty() ? Fd() : open_file(folder_ + "/next");
  if (lock && ::flock(lock.get(), LOCK_EX) == 0 && counts)
    take_out_what_is_held(free_cpus, free_gpus);
  for (const unsigned node : on_nodes) {
    if (held.nodes.size() == wanted.size()) break;
    const Wanted& here = wanted[held.nodes.size()];
    const auto cpus = first_free(free_cpus, node, cpus_, here.cpus);
    const auto gpus = first_free(free_gpus, node, gpus_, here.gpus);
    if (!cpus || !gpus) continue;
    held.nodes.push_back(node);
    append(held.cpus, *cpus);
    append(held.gpus, *gpus);
  }
  if (held.nodes.size() < wanted.size()) return std::nullopt;
  const std::string text = listed(held.cpus) + "\n" + listed(held.gpus) + "\n";
  held.cpus = below(held.cpus, cpus_);
  held.gpus = below(held.gpus, gpus_);
  if (!lock) return held;
  held.step = next_step();
  if (!counts) return held;
  held.file_ = open_file(folder_ + "/" + std::to_string(held.step));
  if (!held.file_) return held;
  ::flock(held.file_.get(), LOCK_EX | LOCK_NB);
  write_all(held.file_.get(), text);
  return held;
}

std::vector<unsigned> ranks_of_nodes(unsigned ranks, unsigned nodes) {
  std::vector<unsigned> of_node(nodes, ranks / nodes);
  for (unsigned node = 0; node < ranks % nodes; ++node) ++of_node[node];
  return of_node;
}

RankPlace place_of_rank(unsigned rank, const std::vector<unsigned>& ranks_of_nodes) {
  RankPlace place{0, rank};
  while (place.local >= ranks_of_nodes.at(place.node)) place.local -= ranks_of_nodes[place.node++];
  return place;
}

}  // namespace hpcbatch::slurm_commands
