#include "api/make/files_now.hpp"

#include "api/read/own_paths.hpp"
#include "api/read/read_items.hpp"
#include "model/placeholders.hpp"
#include "staging/hash_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

// Of so many tasks of an array at most the files are looked at while their user waits.
constexpr std::size_t kTasksLookedAt = 10'000;

/// Of an array, for each of its tasks; of a task alone, the path itself.
void add_filled(const TaskRequest& task, const std::string& path, std::vector<std::string>& paths) {
  const Item example = example_item(task);
  if (!is_array(task) || !has_place(path, example)) {
    paths.push_back(path);
    return;
  }
  // What has an id in its name nobody can have made yet.
  if (has_id(path, example) || task.array.indices.size() > kTasksLookedAt) return;
  for (const IndexRange& range : task.array.indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const auto item = task.items.empty() ? std::nullopt : std::optional<Item>(item_at(task, i));
      const auto index = static_cast<std::uint32_t>(i);
      paths.push_back(
          with_places(path, {ArrayId{}, index}, item, index - (task.from_zero ? 1 : 0)));
    }
  }
}

void look_at_input(const std::string& path, SeenFiles& seen) {
  // A FIFO is opened without its other end, and refused for what it is.
  const int file = open_to_read(path);
  struct stat facts {};
  if (file < 0 || ::fstat(file, &facts) != 0) {
    seen.refusal = fmt::format("cannot read the input {}: {}", path, std::strerror(errno));
  } else if (!S_ISREG(facts.st_mode)) {
    seen.refusal = fmt::format("cannot take {} as an input: it is no regular file", path);
  } else {
    const auto modified = std::chrono::seconds{facts.st_mtim.tv_sec} +
                          std::chrono::nanoseconds{facts.st_mtim.tv_nsec};
    seen.files[path] = {
        path, static_cast<std::uint64_t>(facts.st_size),
        std::chrono::system_clock::time_point(
            std::chrono::duration_cast<std::chrono::system_clock::duration>(modified))};
  }
  if (file >= 0) ::close(file);
}

/// Whoever publishes looks again: this is for who waits for an answer.
void look_at_destination(const std::string& path, SeenFiles& seen) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || S_ISREG(facts.st_mode)) return;
  seen.refusal =
      fmt::format("cannot write the output {}: {}; an output replaces a file, or nothing", path,
                  S_ISLNK(facts.st_mode)   ? "it is a link; name the file that it leads to"
                  : S_ISDIR(facts.st_mode) ? "it is a folder"
                                           : "it is a device, a FIFO or a socket");
}

}  // namespace

NamedFiles named_now(const SubmitRequest& request) {
  NamedFiles named;
  for (const TaskRequest& task : request.tasks) {
    for (const auto& [name, path] : task.outputs) add_filled(task, path, named.destinations);
    // What another task makes is not there yet; a tool's needs may depend on it all the same.
    if (task.tool.empty() && !task.array.after.empty()) continue;
    for (const auto& [name, inputs] : task.inputs) {
      for (const std::string& path : inputs) add_filled(task, path, named.inputs);
    }
  }
  return named;
}

SeenFiles look_at(const NamedFiles& named) {
  SeenFiles seen;
  for (const std::string& path : named.inputs) {
    look_at_input(path, seen);
    if (!seen.refusal.empty()) return seen;
  }
  for (const std::string& path : named.destinations) {
    look_at_destination(path, seen);
    if (!seen.refusal.empty()) return seen;
  }
  return seen;
}

}  // namespace hpcbatch
