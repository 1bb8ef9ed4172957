#include "model/path_map.hpp"

#include <filesystem>
#include <string_view>

namespace hpcbatch {
namespace {

bool is_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

PathMap everything_shared() {
  return {{"/", "/"}};
}

std::optional<std::string> seen_as(const PathMap& map, const std::string& path) {
  if (!path.starts_with('/')) return std::nullopt;
  // What leads back out of a folder is looked at as where it leads, as far as names tell.
  const std::string plain = path.find("..") == std::string::npos
                                ? path
                                : std::filesystem::path(path).lexically_normal().string();
  const SharedFolder* innermost = nullptr;
  for (const SharedFolder& folder : map) {
    if (is_below(plain, folder.here) &&
        (innermost == nullptr || folder.here.size() > innermost->here.size()))
      innermost = &folder;
  }
  if (innermost == nullptr) return std::nullopt;
  if (innermost->here == innermost->there) return plain;
  const std::size_t cut = innermost->here == "/" ? 0 : innermost->here.size();
  const std::string rest = plain.substr(cut);
  if (innermost->there == "/") return rest.empty() ? "/" : rest;
  return innermost->there + (rest == "/" ? "" : rest);
}

}  // namespace hpcbatch
