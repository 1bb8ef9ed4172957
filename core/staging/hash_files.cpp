#include "staging/hash_files.hpp"

#include "posix/files.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kMostRemembered = 100'000;
constexpr unsigned kMostThreads = 4;
// A file system may count time as coarsely as that: of a file so young nothing is remembered.
constexpr std::int64_t kCoarsestClock = 2'000'000'000;

StageError missing(const std::string& path, const std::string& why) {
  return {false, Failure::InputMissing, fmt::format("cannot read the input {}: {}", path, why)};
}

StageError changed(const std::string& path) {
  return {false, Failure::InputChanged,
          fmt::format("the input {} was changed while it was being read, twice; submit again when "
                      "it is finished",
                      path)};
}

/// What is there and does not answer may answer later.
StageError unreadable(const std::string& path, int error) {
  const bool is_lasting = error == ENOENT || error == ENOTDIR || error == EACCES ||
                          error == EPERM || error == ELOOP || error == ENAMETOOLONG ||
                          error == ENXIO || error == EISDIR;
  if (is_lasting) return missing(path, std::strerror(error));
  return {true, Failure::StageInFailed,
          fmt::format("cannot read the input {}: {}", path, std::strerror(error))};
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

std::optional<FileState> state_of(int descriptor) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return FileState{.size = static_cast<std::uint64_t>(facts.st_size),
                   .modified_ns = nanoseconds(facts.st_mtim),
                   .changed_ns = nanoseconds(facts.st_ctim),
                   .device = facts.st_dev,
                   .inode = facts.st_ino,
                   .executable = (facts.st_mode & 0111) != 0};
}

int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

void HashProgress::begin(std::size_t file) {
  const std::lock_guard lock(mutex_);
  files_[file].stage = Stage::Begun;
}

void HashProgress::put_off(std::size_t file) {
  const std::lock_guard lock(mutex_);
  files_[file].stage = Stage::Waits;
}

void HashProgress::answer(std::size_t file, HashAnswer answer) {
  const std::lock_guard lock(mutex_);
  files_[file] = {Stage::Answered, std::move(answer)};
}

std::vector<HashProgress::File> HashProgress::files() const {
  const std::lock_guard lock(mutex_);
  return files_;
}

std::optional<std::string> FileHasher::known(const std::string& path, const FileState& state) {
  const std::lock_guard lock(mutex_);
  for (auto* generation : {&young_, &old_}) {
    const auto at = generation->find(path);
    if (at == generation->end() || at->second.state != state) continue;
    const HashedFile file = at->second;
    if (generation == &old_) young_.insert_or_assign(path, file);
    return file.hash;
  }
  return std::nullopt;
}

void FileHasher::remember(const std::string& path, const HashedFile& file) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (nanoseconds(now) - std::max(file.state.modified_ns, file.state.changed_ns) < kCoarsestClock)
    return;
  const std::lock_guard lock(mutex_);
  if (young_.size() >= kMostRemembered / 2) old_ = std::exchange(young_, {});
  young_.insert_or_assign(path, file);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::optional<HashAnswer> FileHasher::read_on(const std::string& path, bool reads_large,
                                              std::chrono::steady_clock::time_point until) {
  const Fd file(open_to_read(path));
  if (file.get() < 0) return unreadable(path, errno);
  const auto state = state_of(file.get());
  if (!state) return missing(path, "it is no regular file");
  if (auto hash = known(path, *state)) return HashedFile{*state, std::move(*hash)};
  if (state->size >= kLargeFile && !reads_large) return *state;
  Begun begun{*state, {}};
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = begun_.find(path); at != begun_.end()) {
      begun = std::move(at->second);
      begun_.erase(at);
    }
  }
  std::string room(std::min<std::uint64_t>(kPiece, state->size + 1), '\0');
  // One piece at least in each call: where a slice is over before it begins, a file still ends.
  bool was_read = false;
  while (true) {
    const auto now = state_of(file.get());
    if (!now || *now != begun.state) {
      if (!now || begun.was_changed) return changed(path);
      begun = Begun{*now, {}};
      begun.was_changed = true;
    }
    // Begun again in each call where it does not stay the same, and never without end.
    if (was_read && std::chrono::steady_clock::now() >= until) {
      const std::lock_guard lock(mutex_);
      begun_.insert_or_assign(path, std::move(begun));
      return std::nullopt;
    }
    const ssize_t got =
        ::pread(file.get(), room.data(), room.size(), static_cast<off_t>(begun.done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(path, errno);
    if (got > 0) {
      begun.hash.add(std::string_view(room).substr(0, static_cast<std::size_t>(got)));
      begun.done += static_cast<std::uint64_t>(got);
      was_read = true;
      continue;
    }
    const auto after = state_of(file.get());
    if (after && *after == begun.state && begun.done == begun.state.size) {
      HashedFile hashed{begun.state, begun.hash.digits()};
      remember(path, hashed);
      return hashed;
    }
    if (!after || begun.was_changed) return changed(path);
    begun = Begun{*after, {}};
    begun.was_changed = true;
  }
}

void FileHasher::hash(const std::vector<std::string>& paths, const std::set<std::string>& read,
                      std::chrono::milliseconds slice, HashProgress& progress) {
  const auto until = std::chrono::steady_clock::now() + slice;
  std::vector<std::uint64_t> sizes(paths.size());
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, paths.size(), [&](std::size_t at) {
      progress.begin(at);
      struct stat facts {};
      if (::stat(paths[at].c_str(), &facts) == 0)
        sizes[at] = static_cast<std::uint64_t>(facts.st_size);
      progress.put_off(at);
    });
    std::vector<std::size_t> order(paths.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
    // In every second call one thread begins at the large end, so that nothing waits for ever.
    large_first_ = !large_first_;
    std::mutex choice;
    std::size_t front = 0;
    std::size_t back = order.size();
    tbb::parallel_for(
        0U, threads,
        [&](unsigned thread) {
          do {
            std::size_t file = 0;
            {
              const std::lock_guard lock(choice);
              if (front == back) return;
              file = thread == 0 && large_first_ ? order[--back] : order[front++];
            }
            progress.begin(file);
            if (auto answer = read_on(paths[file], read.contains(paths[file]), until)) {
              progress.answer(file, std::move(*answer));
            } else {
              progress.put_off(file);
            }
          } while (std::chrono::steady_clock::now() < until);
        },
        tbb::simple_partitioner{});
  });
  // What nobody asks for any more.
  const std::lock_guard lock(mutex_);
  std::erase_if(begun_, [&](const auto& one) {
    return std::find(paths.begin(), paths.end(), one.first) == paths.end();
  });
}

}  // namespace hpcbatch
