#include "dropbox/job_folder.hpp"

#include "accounts/trust.hpp"
#include "documents/node.hpp"
#include "documents/yaml.hpp"
#include "dropbox/transfer.hpp"
#include "posix/fd.hpp"
#include "posix/replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>

namespace hpcbatch {
namespace {

constexpr std::size_t kLargestTemplate = std::size_t{1} << 20;
constexpr std::size_t kLargestTaken = std::size_t{17} << 20;
constexpr const char* kTakenEnding = ".taken";

std::string short_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string host = name.data();
  return host.substr(0, host.find('.'));
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace

Result<Workspace> Workspace::open(const std::string& path, const std::string& trust_group) {
  std::error_code failed;
  const bool is_new = std::filesystem::create_directories(path, failed);
  if (failed) {
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot make the workspace {}: {}", path, failed.message())};
  }
  if (is_new) ::chmod(path.c_str(), 0700);
  // Scripts of many users' jobs lie there: what a group may write is refused, not only said.
  const auto found = distrust(path, Wanted::Folder, trust_group);
  const auto real = std::filesystem::canonical(path, failed);
  if (found && (found->is_refusal || found->path == real)) {
    return Error{Error::Kind::Rejected, fmt::format("cannot use the workspace {}: {}{}", path,
                                                    found->text, found->group_hint)};
  }
  return Workspace(path);
}

std::string Workspace::name_folder(std::uint64_t inode, Time now,
                                   const std::set<std::string>& given) const {
  std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  while (true) {
    std::string folder = fmt::format("{}/{}-{}-{}", path_, short_host(), inode, seconds);
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 && !given.contains(folder)) return folder;
    ++seconds;  // an inode used again within the second
  }
}

bool Workspace::is_job_folder(const std::string& path) const {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || path.substr(0, slash) != path_) return false;
  const std::string_view name = std::string_view(path).substr(slash + 1);
  const auto last = name.rfind('-');
  if (last == std::string_view::npos || last == 0) return false;
  const auto middle = name.rfind('-', last - 1);
  return middle != std::string_view::npos && middle > 0 && name.front() != '.' &&
         is_digits(name.substr(last + 1)) && is_digits(name.substr(middle + 1, last - middle - 1));
}

Result<void> Workspace::make(const std::string& folder) const {
  remove(folder);
  for (const std::string& path : {folder, folder + "/input", folder + "/output"}) {
    if (::mkdir(path.c_str(), 0700) != 0) return errno_error("cannot make " + path);
  }
  return {};
}

void Workspace::remove(const std::string& folder) const {
  if (!is_job_folder(folder)) return;
  std::error_code ignored;  // what a tool made unremovable stays; nothing depends on it
  std::filesystem::remove_all(folder, ignored);
}

Result<void> Workspace::note_taken(const std::string& folder, const Taken& taken) const {
  const std::string path = folder + kTakenEnding;
  forget_taken(folder);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_error("cannot write " + path);
  const std::string text = fmt::format("{}\n{}{}", taken.name.size(), taken.name, taken.document);
  if (auto written = write_content(file.get(), text); !written) return written;
  if (::fsync(file.get()) != 0) return errno_error("cannot write " + path);
  return {};
}

std::optional<Workspace::Taken> Workspace::taken(const std::string& folder) const {
  if (!is_job_folder(folder)) return std::nullopt;
  std::string text;
  try {
    text = read_text(folder + kTakenEnding, kLargestTaken);
  } catch (const DocumentError&) {
    return std::nullopt;
  }
  const auto line = text.find('\n');
  std::size_t size = 0;
  const auto read = std::from_chars(text.data(), text.data() + std::min(line, text.size()), size);
  if (line == std::string::npos || read.ec != std::errc{} || text.size() - line - 1 < size)
    return std::nullopt;
  return Taken{.name = text.substr(line + 1, size), .document = text.substr(line + 1 + size)};
}

void Workspace::forget_taken(const std::string& folder) const {
  if (is_job_folder(folder)) ::unlink((folder + kTakenEnding).c_str());
}

Result<void> write_script(const std::string& folder, const std::string& name,
                          std::string_view text) {
  const std::string path = folder + "/" + name;
  errno = replace_file(AT_FDCWD, path, text, {.mode = 0750, .against_umask = true});
  if (errno != 0) return errno_error("cannot write " + path);
  return {};
}

Result<std::optional<std::string>> find_template(const std::vector<std::string>& folders,
                                                 const std::string& script,
                                                 const std::string& trust_group) {
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/{}.template", folder, script);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    if (const auto found = distrust(path, Wanted::File, trust_group); found && found->is_refusal) {
      return Error{Error::Kind::Rejected, fmt::format("cannot use the template {}: {}{}", path,
                                                      found->text, found->group_hint)};
    }
    try {
      return std::optional(read_text(path, kLargestTemplate));
    } catch (const DocumentError& e) {
      return Error{Error::Kind::Rejected,
                   fmt::format("cannot use the template {}: {}", path, e.message)};
    }
  }
  return std::optional<std::string>{};
}

std::vector<std::string> command_of(const std::string& script_path, std::string_view text) {
  if (text.starts_with("#!")) return {script_path};
  return {"sh", script_path};
}

}  // namespace hpcbatch
