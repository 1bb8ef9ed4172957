#include "api/make/submitted_files.hpp"

#include "api/read/json_values.hpp"
#include "api/read/read_task.hpp"
#include "model/item.hpp"
#include "staging/hash_files.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// Everything the task reads or writes that may have to be staged in or out.
std::vector<std::string> files_of(const wire::Start& start) {
  std::vector<std::string> files(start.inputs().begin(), start.inputs().end());
  for (const wire::Output& output : start.outputs()) files.push_back(output.destination());
  for (const std::string* path : {&start.standard_input(), &start.standard_output(),
                                  &start.standard_error(), &start.container()}) {
    if (path->starts_with('/')) files.push_back(*path);
  }
  return files;
}

Item first_of(const OwnItems& items) {
  return items.stored.empty() ? Item() : item_of(items.filled, items.stored.front());
}

bool sees(const Site& site, const std::string& path, const OwnItems& items) {
  // An index or an id says nothing of the folder.
  if (items.stored.empty() || !has_item(path, first_of(items)))
    return seen_as(site.path_map, without_doubled(path)).has_value();
  return std::all_of(items.stored.begin(), items.stored.end(), [&](const std::string& stored) {
    return seen_as(site.path_map, with_item(path, item_of(items.filled, stored))).has_value();
  });
}

}  // namespace

std::vector<const Site*> sites_of(const Engine& engine) {
  std::vector<const Site*> sites;
  for (const SiteState& state : engine.sites().sites()) sites.push_back(&state.site);
  return sites;
}

void note_far_sites(const std::vector<const Site*>& sites, const wire::Start& start,
                    const OwnItems& items, const std::vector<std::string>& shared, Needs& needs) {
  const std::vector<std::string> files = files_of(start);
  std::vector<std::string> excluded;
  bool any_left = sites.empty();
  for (const Site* site : sites) {
    if (!may_run_at(needs, site->name)) continue;
    const auto is_seen = [&](const std::string& path) { return sees(*site, path, items); };
    const auto is_the_same = [&](const std::string& folder) {
      return seen_as(site->path_map, folder) == folder;
    };
    // What it prints lies elsewhere there until it has ended, and then replaces what there was.
    const auto is_far = [&](const std::string& path) { return !path.empty() && !is_seen(path); };
    const bool cannot_append = start.open_mode() == 1 &&
                               (is_far(start.standard_output()) || is_far(start.standard_error()));
    if (cannot_append || !std::all_of(shared.begin(), shared.end(), is_the_same)) {
      excluded.push_back(site->name);
      continue;
    }
    any_left = true;
    if (!std::all_of(files.begin(), files.end(), is_seen)) needs.staged_to.push_back(site->name);
  }
  if (!any_left && !shared.empty()) {
    throw BadRequest(fmt::format(
        "no site that the task may run on sees {}; a site's 'path_map' says what it sees",
        fmt::join(shared, " and ")));
  }
  needs.not_on.insert(needs.not_on.end(), excluded.begin(), excluded.end());
  std::sort(needs.not_on.begin(), needs.not_on.end());
  std::sort(needs.staged_to.begin(), needs.staged_to.end());
  needs.own_files = !needs.staged_to.empty() && items.filled != Filled::Nothing &&
                    std::any_of(start.inputs().begin(), start.inputs().end(),
                                [first = first_of(items)](const std::string& path) {
                                  return has_place(path, first);
                                });
}

namespace {

// Of so many tasks of an array at most the files are looked at while their user waits.
constexpr std::size_t kTasksLookedAt = 10'000;

/// Of an array, for each of its tasks; of a task alone, the path itself.
void add_filled(const TaskRequest& task, const std::string& path, std::vector<std::string>& paths) {
  const Item example = example_item(task);
  if (!is_array(task) || !has_place(path, example)) {
    paths.push_back(is_array(task) ? without_doubled(path) : path);
    return;
  }
  // What has an id in its name nobody can have made yet.
  if (has_id(path, example) || task.array.indices.size() > kTasksLookedAt) return;
  for (const IndexRange& range : task.array.indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const auto item = task.items.empty() ? std::nullopt : std::optional<Item>(item_at(task, i));
      const auto index = static_cast<std::uint32_t>(i);
      paths.push_back(
          with_places(path, {{ArrayId{}, index}, index - (task.from_zero ? 1 : 0)}, item));
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

namespace {

constexpr std::string_view kNowhere = "/dev/null";

std::string sentence(std::string_view what, const std::string& file) {
  if (file == kNowhere) return fmt::format("{} is thrown away, as was asked for", what);
  return fmt::format("{} goes to {}", what, file);
}

}  // namespace

OutputFiles output_files(const wire::Start& start) {
  return {start.standard_output(), start.standard_error()};
}

OutputFiles output_files(const std::string& recipe, TaskId task, const std::optional<Item>& item) {
  return output_files(start_from_bytes(recipe), filled_in(recipe), task, item);
}

OutputFiles output_files(const wire::Start& start, Filled filled, TaskId task,
                         const std::optional<Item>& item) {
  OutputFiles files = output_files(start);
  if (filled == Filled::Nothing) return files;
  const PlaceValues values = place_values(start, task);
  return {with_places(files.out, values, item), with_places(files.err, values, item)};
}

void put(boost::json::object& object, const OutputFiles& files) {
  if (!files.out.empty()) object["stdout"] = files.out;
  if (!files.err.empty()) object["stderr"] = files.err;
}

void add(boost::json::array& details, const OutputFiles& files) {
  const auto tell = [&](std::string_view what, const std::string& file) {
    if (!file.empty()) details.push_back(boost::json::string(sentence(what, file)));
  };
  if (files.out == files.err) return tell("what it prints", files.out);
  tell("its standard output", files.out);
  tell("its standard error", files.err);
}

}  // namespace hpcbatch
