#include "plugin_host/trust.hpp"

#include <fmt/format.h>

#include <cstring>

namespace hpcbatch {

std::optional<std::string> distrust(const struct stat& facts, uid_t user) {
  if (facts.st_uid != 0 && facts.st_uid != user) {
    return fmt::format("belongs to user {}, neither to root nor to us (user {})", facts.st_uid,
                       user);
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("can be written by {}; run: chmod go-w",
                       (facts.st_mode & S_IWOTH) != 0 ? "everybody" : "its group");
  }
  return std::nullopt;
}

std::optional<std::string> untrusted_plugin(const std::filesystem::path& file, uid_t user) {
  if (!file.is_absolute()) {
    return fmt::format("plugin {} is refused: its path is not absolute; give the whole path",
                       file.string());
  }
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) {
    return fmt::format("plugin {} cannot be read: {}", file.string(), std::strerror(errno));
  }
  if (!S_ISREG(facts.st_mode)) return fmt::format("plugin {} is no regular file", file.string());
  if (auto why = distrust(facts, user)) {
    return fmt::format("plugin {} is refused: it {}{}", file.string(), *why,
                       why->ends_with("go-w") ? " " + file.string() : "");
  }
  const std::filesystem::path directory = file.parent_path();
  if (::stat(directory.c_str(), &facts) != 0) {
    return fmt::format("directory {} cannot be read: {}", directory.string(), std::strerror(errno));
  }
  if (auto why = distrust(facts, user)) {
    return fmt::format("plugin {} is refused: its directory {}{}", file.string(), *why,
                       why->ends_with("go-w") ? " " + directory.string() : "");
  }
  return std::nullopt;
}

}  // namespace hpcbatch
