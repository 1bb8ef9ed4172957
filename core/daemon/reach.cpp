#include "daemon/reach.hpp"

#include "daemon/trusted_places.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

/// Less than verbs wait for an engine that they cannot reach.
constexpr std::chrono::seconds kEvery{2};

std::string in_home(const Places& places) {
  return places.home + "/socket";
}

/// A shell without XDG_RUNTIME_DIR looks for the socket in the home.  Why it cannot; else nothing.
std::string link_socket(const Places& places) {
  const std::string beside = in_home(places);
  std::error_code error;
  if (beside == places.socket || fs::read_symlink(beside, error) == places.socket) return {};
  fs::remove(beside, error);
  fs::create_symlink(places.socket, beside, error);
  return error ? fmt::format("cannot link {} to the socket: {}", beside, error.message()) : "";
}

/// A link that leads nowhere is in the way of a socket.
void remove_link(const std::string& path) {
  std::error_code error;
  if (fs::is_symlink(path, error)) fs::remove(path, error);
}

}  // namespace

std::optional<std::string> own_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fmt::format("cannot make the directory {}: {}", path, std::strerror(errno));
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0)
    return fmt::format("cannot look at {}: {}", path, std::strerror(errno));
  if (facts.st_uid == ::geteuid() && (facts.st_mode & 077) == 0) return std::nullopt;
  return fmt::format(
      "{} is not ours alone (owner {}, mode {:o}); 'chmod 700' it, or name another with "
      "HPCBATCH_HOME",
      path, facts.st_uid, facts.st_mode & 07777);
}

void Reach::begin() {
  told_.no_link = link_socket(places_);
  if (!told_.no_link.empty()) spdlog::warn("{}", told_.no_link);
  look_later();
}

void Reach::renew_lock(bool ends_when_idle) {
  lane_.run([this, ends_when_idle] { lock_.renew(ends_when_idle); });
}

/// The next look waits for the one before, which may hang.
void Reach::look_later() {
  timer_.expires_after(kEvery);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    lane_.run([this, file = server_.file()] {
      asio::post(loop_, [this, found = look(file)]() mutable {
        take(std::move(found));
        look_later();
      });
    });
  });
}

/// On the lane, as all that it calls.
Reach::Found Reach::look(const SocketFile& file) const {
  Found found;
  if (const auto refused = lock_.stand_again()) {
    // Who has lost the lock to another engine leaves the socket to that.
    found.no_lock = refused->text;
    return found;
  }
  if (!is_in_place(file)) listen_again(found);
  const std::string& path = found.made ? found.made->file.path : file.path;
  if (path == places_.socket) found.no_link = link_socket(places_);
  return found;
}

void Reach::listen_again(Found& found) const {
  for (const std::string& path : {places_.socket, in_home(places_)}) {
    auto made = listen_again_in_place(path, found.said);
    if (made) {
      found.made = std::move(*made);
      return;
    }
    found.no_socket += (found.no_socket.empty() ? "" : "; ") + made.error().text;
    if (path == in_home(places_)) return;
  }
}

Result<ListeningSocket> Reach::listen_again_in_place(const std::string& path,
                                                     std::vector<std::string>& said) const {
  // The home is not made again: without it there is no store either.
  if (const std::string folder = fs::path(path).parent_path().string(); folder != places_.home) {
    auto why = untrusted_socket_folder(folder, trust_group_, said);
    if (!why) why = own_directory(folder);
    if (why) return Error{Error::Kind::Rejected, std::move(*why)};
  }
  if (path != places_.socket) remove_link(path);
  return listen_again_at(path);
}

void Reach::take(Found found) {
  tell(found);
  for (const std::string& text : found.said) spdlog::warn("{}", text);
  if (found.made) server_.listen(std::move(*std::exchange(found.made, std::nullopt)));
  told_ = std::move(found);
}

void Reach::tell(const Found& found) {
  if (found.made)
    spdlog::warn("the socket was removed or replaced; listening again, on {}{}",
                 found.made->file.path,
                 found.no_socket.empty() ? "" : ", because of its own place: " + found.no_socket);
  if (!found.no_lock.empty() && found.no_lock != told_.no_lock)
    spdlog::error(
        "the lock of {} was removed or replaced and cannot be made again: {}; it is tried again",
        places_.home, found.no_lock);
  if (!found.made && !found.no_socket.empty() && found.no_socket != told_.no_socket)
    spdlog::error(
        "the socket was removed or replaced, and no command reaches this engine: {}; it is tried "
        "again",
        found.no_socket);
  if (!found.no_link.empty() && found.no_link != told_.no_link) spdlog::warn("{}", found.no_link);
}

}  // namespace hpcbatch
