#include "pilot/link/ways_to_engine.hpp"

#include "pilot/base/socket_address.hpp"
#include "posix/doubling_pause.hpp"
#include "posix/socket_path.hpp"
#include "wire/relay.hpp"
#include "wire/whole_file.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstPause = 50ms;
constexpr Duration kLongestPause = 2s;
// For a socket of this machine, which costs nothing to try.
constexpr Duration kLongestPauseHere = 500ms;
constexpr Duration kBeforeSlow = 20s;
// A relay that has died is started again within that time.
constexpr Duration kBeforeSlowWithRelay = 100s;
// A missing file is believed when it stays so: NFS may hide it for a moment, and the workspace may
// be mounted anew.
constexpr Duration kMissingFor = 10s;

/// NFS remembers for a minute that a file was not there, unless its folder is opened.
void look_anew(const std::string& folder) {
  if (DIR* directory = ::opendir(folder.c_str())) ::closedir(directory);
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

WaysToEngine::WaysToEngine(std::string path, wire::PilotFile file, Time now)
    : path_(std::move(path)), file_(std::move(file)), alone_since_(now) {}

void WaysToEngine::look(Time now) {
  if (rounds_ > 0) read_file(now);
  ++rounds_;
  ways_ = is_given_up_ ? std::vector<Way>() : ways(now);
  at_ = 0;
}

void WaysToEngine::read_file(Time now) {
  look_anew(folder_of(path_));
  if (auto file = wire::read_pilot_file(path_)) {
    missing_since_.reset();
    if (file->allocation == file_.allocation) file_ = std::move(*file);
  } else if (::access(path_.c_str(), F_OK) == 0 || errno != ENOENT) {
    missing_since_.reset();
  } else if (!missing_since_) {
    missing_since_ = now;
  } else {
    is_given_up_ = now >= *missing_since_ + kMissingFor;
  }
}

std::vector<WaysToEngine::Way> WaysToEngine::ways(Time now) const {
  using Kind = wire::Address::Kind;
  std::vector<Way> found;
  Duration before_slow = file_.addresses.size() > 1 ? kBeforeSlow : Duration{};
  for (const wire::Address& address : file_.addresses) {
    if (address.kind == Kind::Relay) {
      before_slow = kBeforeSlowWithRelay;
      look_anew(folder_of(address.place));
      const auto text = wire::read_file(address.place, wire::Readers::OwnerOnly);
      if (!text) continue;
      const auto addresses = wire::parse_relay_file(*text, address.place);
      if (!addresses) continue;
      for (const wire::Address& one : *addresses)
        found.push_back({one, "relay " + to_text(one), false});
    } else {
      const bool is_slow = address.kind == Kind::Spool;
      // Where files were the way before they are tried at once, behind the others.
      if (is_slow && !came_by_files_ && now < alone_since_ + before_slow) continue;
      found.push_back({address, to_text(address), is_slow});
    }
  }
  return found;
}

bool WaysToEngine::try_next() {
  if (at_ + 1 >= ways_.size()) return false;
  ++at_;
  return true;
}

Duration WaysToEngine::pause() const {
  const bool is_here = any() && current().address.kind == wire::Address::Kind::Unix;
  const Duration longest = is_here ? kLongestPauseHere : kLongestPause;
  return doubling_pause(kFirstPause, longest, rounds_ > 0 ? rounds_ - 1 : 0);
}

void WaysToEngine::lost(Time now) {
  alone_since_ = now;
  came_by_files_ = current().is_slow;
  at_ = ways_.size() - 1;
}

namespace {

struct Target : SocketAddress {
  Fd folder;  // held open while a long path is reached through it
};

Error error_at(const wire::Address& address, const std::string& why) {
  return Error{Error::Kind::Transient, to_text(address) + ": " + why};
}

Result<Target> unix_address(const wire::Address& address) {
  Target result;
  SocketPath reachable = socket_path(address.place);
  if (reachable.error != 0) return error_at(address, std::strerror(reachable.error));
  result.folder = std::move(reachable.folder);
  const sockaddr_un plain = address_of(reachable);
  std::memcpy(&result.bytes, &plain, sizeof plain);
  result.length = sizeof plain;
  return result;
}

Result<Target> tcp_address(const wire::Address& address) {
  const auto found = numeric_address(address.place, address.port);
  if (!found) return error_at(address, "not an address in numbers, and a pilot looks up no names");
  return Target{*found, Fd()};
}

}  // namespace

Result<Fd> start_connecting(const wire::Address& address) {
  const bool is_unix = address.kind == wire::Address::Kind::Unix;
  const auto target = is_unix ? unix_address(address) : tcp_address(address);
  if (!target) return target.error();
  Fd socket(::socket(target->bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return error_at(address, std::strerror(errno));
  if (!is_unix) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  if (::connect(socket.get(), target->get(), target->length) != 0 && errno != EINPROGRESS) {
    return error_at(address, std::strerror(errno));
  }
  return socket;
}

int connection_error(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

}  // namespace hpcbatch::pilot
