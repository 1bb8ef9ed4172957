#include "daemon/reach.hpp"

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

void link_socket(const Places& places) {
  const std::string beside = in_home(places);
  std::error_code error;
  if (beside == places.socket || fs::read_symlink(beside, error) == places.socket) return;
  fs::remove(beside, error);
  fs::create_symlink(places.socket, beside, error);
  if (error) spdlog::warn("cannot link {} to the socket: {}", beside, error.message());
}

void Reach::begin() {
  timer_.expires_after(kEvery);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    look();
    begin();
  });
}

void Reach::look() {
  if (!has_lock()) return;
  if (!server_.is_in_reach()) return listen_again();
  told_.clear();
  if (!is_in_home_) link_socket(places_);
}

/// Who has lost the lock to another engine leaves the socket to that.
bool Reach::has_lock() {
  const auto refused = lock_.stand_again();
  if (refused && std::exchange(told_, refused->text) != refused->text) {
    spdlog::error(
        "the lock of {} was removed or replaced and cannot be made again: {}; it is tried "
        "again",
        places_.home, refused->text);
  }
  return !refused;
}

void Reach::listen_again() {
  std::string why;
  // The home is not made again: without it there is no store either.
  for (const bool in_its_place : {true, false}) {
    const std::string path = in_its_place ? places_.socket : in_home(places_);
    if (!in_its_place && path == places_.socket) continue;
    std::optional<std::string> refused;
    const std::string folder = fs::path(path).parent_path().string();
    if (folder != places_.home) refused = own_directory(folder);
    if (!in_its_place) remove_link(path);
    if (!refused) {
      const auto listening = server_.listen_again(path);
      if (listening) {
        is_in_home_ = !in_its_place;
        if (!is_in_home_) link_socket(places_);
        spdlog::warn("the socket was removed or replaced; listening again, on {}", path);
        told_.clear();
        return;
      }
      refused = listening.error().text;
    }
    why += (why.empty() ? "" : "; ") + *refused;
  }
  if (std::exchange(told_, why) != why)
    spdlog::error(
        "the socket was removed or replaced, and no command reaches this engine: {}; it "
        "is tried again",
        why);
}

}  // namespace hpcbatch
