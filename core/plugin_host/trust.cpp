#include "plugin_host/trust.hpp"

#include "accounts/trust.hpp"
#include "hpcbatch/plugin.hpp"
#include "plugin_host/search_path.hpp"

#include <fmt/format.h>

#include <string>

#include <sys/stat.h>

namespace hpcbatch {
namespace {

bool is_writable(const std::filesystem::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/// What else is likely wrong in the same way: a careless umask leaves all plugins so, and they are to
/// be mended at once.
std::string also_writable(const std::filesystem::path& root) {
  std::string text;
  const auto look = [&text](const std::filesystem::path& path) {
    if (is_writable(path)) text += " " + path.string();
  };
  for (const auto kind : {HPCBATCH_KIND_SCHEDULER, HPCBATCH_KIND_TRANSPORT, HPCBATCH_KIND_TOOL,
                          HPCBATCH_KIND_ESTIMATOR}) {
    const std::filesystem::path folder = root / folder_of(kind);
    look(folder);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".so") look(entry.path());
    }
  }
  return text.empty() ? text : "; for all plugins there: chmod go-w" + text;
}

}  // namespace

std::optional<std::string> untrusted_plugin(const std::filesystem::path& file) {
  if (!file.is_absolute()) {
    return fmt::format("plugin {} is refused: its path is not absolute; give the whole path",
                       file.string());
  }
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) {
    return fmt::format("plugin {} cannot be read: {}", file.string(), std::strerror(errno));
  }
  // What is loaded runs in our own process: a group's members are not trusted with that, either.
  const auto found = distrust(file.string(), Wanted::File);
  if (!found) return std::nullopt;
  return fmt::format("plugin {} is refused: {}{}", file.string(), found->text,
                     also_writable(file.parent_path().parent_path()));
}

}  // namespace hpcbatch
