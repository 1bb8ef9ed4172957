#include "pilot/link/spool_box.hpp"

#include "pilot/base/remove_tree.hpp"
#include "wire/spool.hpp"
#include "wire/whole_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace hpcbatch::pilot {
namespace {

constexpr std::string_view kClosed = "closed";
constexpr time_t kLongAgo = 600;  // seconds

}  // namespace

Result<void> SpoolBox::make() const {
  if (::mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return Error{Error::Kind::Transient,
               "cannot make directory " + folder_ + ": " + std::strerror(errno)};
}

std::string SpoolBox::path_of(std::uint64_t number) const {
  return folder_ + "/" + wire::piece_name(number);
}

Result<void> SpoolBox::put(std::uint64_t number, std::string_view bytes) const {
  // Without a sync, which beside a busy disk takes seconds: a piece that does not survive is one of a
  // link that is lost, and what was said by that is said again.
  return wire::replace_file(path_of(number), wire::sealed_piece(number, bytes),
                            wire::Readers::OwnerOnly, false);
}

std::optional<std::vector<std::uint64_t>> SpoolBox::numbers() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder_.c_str()), ::closedir);
  if (!directory) return std::nullopt;
  std::vector<std::uint64_t> found;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (const std::uint64_t number = wire::piece_number(entry->d_name); number > 0)
      found.push_back(number);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::string> SpoolBox::take(std::uint64_t number) const {
  const auto file = wire::read_file(path_of(number), wire::Readers::OwnerOnly);
  if (!file) return std::nullopt;
  auto bytes = wire::opened_piece(number, *file);
  if (!bytes) return std::nullopt;
  return std::move(*bytes);
}

void SpoolBox::remove(std::uint64_t number) const {
  ::unlink(path_of(number).c_str());
}

SpoolConnection::SpoolConnection(const std::string& at)
    : folder(at), up(at + "/up"), down(at + "/down") {}

bool SpoolConnection::is_closed() const {
  // Not by its name: NFS remembers for a minute that a file was not there, but looks anew at a
  // folder that is opened.
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
    if (std::string_view(entry->d_name) == kClosed) return true;
  }
  return false;
}

bool SpoolConnection::was_closed_long_ago() const {
  struct stat mark {};
  struct stat now {};
  // Both times are the file server's.
  if (::stat((folder + "/" + std::string(kClosed)).c_str(), &mark) != 0) return false;
  const std::string probe = folder + "/now";
  (void)wire::replace_file(probe, "", wire::Readers::OwnerOnly);
  const bool is_known = ::stat(probe.c_str(), &now) == 0;
  ::unlink(probe.c_str());
  return is_known && now.st_mtime - mark.st_mtime > kLongAgo;
}

bool SpoolConnection::is_gone() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  return !directory && errno == ENOENT;
}

void SpoolConnection::close() const {
  (void)wire::replace_file(folder + "/" + std::string(kClosed), "", wire::Readers::OwnerOnly);
}

void SpoolConnection::remove_all() const {
  remove_tree(folder);
}

}  // namespace hpcbatch::pilot
