#include "tools/tool_registry.hpp"

#include "accounts/accounts.hpp"
#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::string_view kEnding = ".yaml";
constexpr std::size_t kLargestFile = std::size_t{1} << 20;

Error rejected(std::string text) {
  return Error{Error::Kind::Rejected, std::move(text)};
}

}  // namespace

std::vector<std::string> tool_directories(const std::vector<std::string>& configured,
                                          const std::string& folder_of_program) {
  std::vector<std::string> directories = configured;
  const std::filesystem::path ours =
      std::filesystem::path(folder_of_program) / "../share/hpcbatch/tools";
  directories.push_back(ours.lexically_normal().string());
  return directories;
}

ToolRegistry::ToolRegistry(std::vector<std::string> directories, OpenTool open,
                           std::map<std::string, std::map<std::string, std::string>> parameters,
                           std::string trust_group)
    : directories_(std::move(directories)),
      open_(std::move(open)),
      parameters_(std::move(parameters)),
      trust_group_(std::move(trust_group)) {}

std::vector<std::string> ToolRegistry::known_names() const {
  std::set<std::string> names;
  for (const std::string& directory : directories_) {
    std::error_code failed;
    for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end;
         at.increment(failed)) {
      const std::string file = at->path().filename();
      if (!file.ends_with(kEnding)) continue;
      const std::string name = file.substr(0, file.size() - kEnding.size());
      if (is_word(name)) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

Result<ToolRegistry::Shelved*> ToolRegistry::look_up(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(kEnding)) {
    return rejected(
        fmt::format("'{}' is a file; say the tool's name, '{}': it is looked for in {}, "
                    "and in the folders of tool_path in the configuration",
                    show_text(name), show_text(std::filesystem::path(name).stem().string()),
                    fmt::join(directories_, ", ")));
  }
  if (!is_word(name)) return rejected(fmt::format("'{}' is no name of a tool", show_text(name)));
  for (const std::string& directory : directories_) {
    const std::string path = fmt::format("{}/{}{}", directory, name, kEnding);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    // Its command runs with the engine's rights.
    if (const auto found = distrust(path, Wanted::File, trust_group_); found && found->is_refusal) {
      return rejected(
          fmt::format("cannot use tool {}: {}{}", name, found->text, found->group_hint));
    }
    const Stamp stamp{.path = path,
                      .inode = status.st_ino,
                      .changed_ns = status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec,
                      .size = status.st_size};
    if (const auto at = registry_.find(name); at != registry_.end() && at->second.stamp == stamp)
      return &at->second;
    try {
      auto tool = std::make_shared<const ToolFile>(parse_tool(read_text(path, kLargestFile), path));
      return &registry_
                  .insert_or_assign(
                      name, Shelved{.stamp = stamp, .file = std::move(tool), .plugin = nullptr})
                  .first->second;
    } catch (const DocumentError& e) {
      return rejected(fmt::format("cannot use tool {}: {}", name, e.what()));
    }
  }
  return rejected(fmt::format("there is no tool '{}' in {}{}", name, fmt::join(directories_, ", "),
                              spelling_hint(name, known_names())));
}

Result<ToolRegistry::Shelved*> ToolRegistry::open(const std::string& name) {
  Result<Shelved*> found = look_up(name);
  if (!found || (*found)->plugin) return found;
  Result<std::shared_ptr<Tool>> plugin = open_((*found)->file->plugin, (*found)->file->text);
  if (!plugin) {
    return Error{plugin.error().kind, fmt::format("cannot use tool {} ({}): {}", name,
                                                  (*found)->file->path, plugin.error().text)};
  }
  (*found)->plugin = std::move(*plugin);
  return found;
}

std::vector<ToolRegistry::Listing> ToolRegistry::list() {
  std::vector<Listing> listings;
  for (const std::string& name : known_names()) {
    Listing listing{.name = name, .path = {}, .tool = nullptr, .error = {}};
    if (const auto found = look_up(name)) {
      listing.tool = (*found)->file;
      listing.path = listing.tool->path;
    } else {
      listing.error = found.error().text;
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

Result<std::shared_ptr<const ToolFile>> ToolRegistry::find(const std::string& name) {
  const auto found = look_up(name);
  if (!found) return found.error();
  return (*found)->file;
}

Result<std::shared_ptr<const ToolFile>> ToolRegistry::check(const std::string& name) {
  const auto found = open(name);
  if (!found) return found.error();
  return (*found)->file;
}

Result<RenderedTask> ToolRegistry::prepare(const ToolCall& call, const std::string& directory) {
  const auto found = open(call.tool);
  if (!found) return found.error();
  return hpcbatch::prepare(*(*found)->file, *(*found)->plugin, call, defaults_of(call.tool),
                           directory);
}

std::map<std::string, std::string> ToolRegistry::defaults_of(const std::string& name) const {
  const auto defaults = parameters_.find(name);
  return defaults == parameters_.end() ? std::map<std::string, std::string>{} : defaults->second;
}

std::shared_ptr<const BlockingTool> ToolRegistry::blocking(const std::string& name) {
  const auto found = open(name);
  return found ? std::dynamic_pointer_cast<const BlockingTool>((*found)->plugin) : nullptr;
}

std::optional<Preparation> ToolRegistry::elsewhere(const ToolCall& call,
                                                   const std::string& directory) {
  const auto found = open(call.tool);
  if (!found) return std::nullopt;
  auto plugin = std::dynamic_pointer_cast<const BlockingTool>((*found)->plugin);
  if (!plugin) return std::nullopt;
  return Preparation{(*found)->file, std::move(plugin), call, defaults_of(call.tool), directory};
}

}  // namespace hpcbatch
