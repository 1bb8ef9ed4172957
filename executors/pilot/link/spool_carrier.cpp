#include "pilot/link/spool_carrier.hpp"

#include "pilot/base/files.hpp"
#include "pilot/base/log_line.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/relay.hpp"
#include "wire/whole_file.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// How often the folder is looked at: often behind something that came, ever less often while
// nothing does.
constexpr auto kShortestPause = 20ms;
constexpr auto kLongestLookPause = 2000ms;
// A folder that is missing is believed when it is missing for so long: NFS may hide it for a
// moment.
constexpr auto kSpoolMissingFor = 30s;
// Last words that cannot be written are given up.
constexpr auto kLastTries = 10s;
// What is said in so short a time goes in one piece.
constexpr auto kSpoolCompany = 5ms;

/// One connection, from its first piece to its last.
class Carrying {
 public:
  Carrying(SpoolConnection connection, Fd socket)
      : connection_(std::move(connection)), socket_(std::move(socket)) {}

  void run() {
    if (!make()) return;
    while (is_going_on()) {
      const bool has_said = hear_link();
      const bool has_heard = hear_engine();
      pause_ = has_said || has_heard
                   ? kShortestPause
                   : std::min<std::chrono::milliseconds>(kLongestLookPause, pause_ * 3 / 2);
    }
    // One that was never answered is nothing to anybody.
    if (is_closed_ || next_down_ == 1) connection_.remove_all();
  }

 private:
  bool make() const {
    ::mkdir(connection_.folder.substr(0, connection_.folder.rfind('/')).c_str(), 0700);
    ::mkdir(connection_.folder.c_str(), 0700);
    for (const SpoolBox* box : {&connection_.down, &connection_.up}) {
      if (auto made = box->make(); !made) {
        log_line(made.error().text);
        return false;
      }
    }
    return true;
  }

  bool is_going_on() {
    const auto now = Clock::now();
    if (!connection_.is_gone()) seen_at_ = now;
    if (is_closed_ || now >= seen_at_ + kSpoolMissingFor) return false;
    if (!link_is_closed_) return true;
    return !said_.empty() && next_down_ > 1 && now < link_closed_at_ + kLastTries;
  }

  /// What the link says becomes a piece, as long as the engine takes them.
  bool hear_link() {
    const auto waiting = connection_.up.numbers();
    const bool may_say = !waiting || waiting->size() < wire::kPiecesUnderWay;
    if (said_.empty() && !link_is_closed_ && may_say) gather();
    if (said_.empty() || !may_say) {
      if (!may_say || link_is_closed_) wait_for_the_end_of_the_link();
      return false;
    }
    if (auto put = connection_.up.put(next_up_, said_); !put) {
      if (put.error().text != last_trouble_) log_line("spool: " + put.error().text);
      last_trouble_ = put.error().text;
      std::this_thread::sleep_for(kLongestLookPause);
      return false;
    }
    ++next_up_;
    said_.clear();
    return true;
  }

  void link_closed() {
    link_is_closed_ = true;
    link_closed_at_ = Clock::now();
  }

  void wait_for_the_end_of_the_link() {
    if (link_is_closed_) return std::this_thread::sleep_for(pause_);
    pollfd wait{socket_.get(), 0, 0};
    if (::poll(&wait, 1, static_cast<int>(pause_.count())) > 0) link_closed();
  }

  void gather() {
    auto patience = pause_;
    while (said_.size() < wire::kLargestPiece) {
      pollfd wait{socket_.get(), POLLIN, 0};
      if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return;
      const std::size_t before = said_.size();
      said_.resize(wire::kLargestPiece);
      const ssize_t got = ::recv(socket_.get(), said_.data() + before, said_.size() - before, 0);
      said_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got <= 0) {
        link_closed();
        return;
      }
      patience = kSpoolCompany;
    }
  }

  bool hear_engine() {
    // Asked before the folder is looked at: whatever was put there before the mark is then seen.
    const bool closes = connection_.is_closed();
    const auto numbers = connection_.down.numbers();
    bool any = false;
    for (const std::uint64_t number : numbers.value_or(std::vector<std::uint64_t>{})) {
      if (number == next_down_) {
        const auto bytes = connection_.down.take(number);
        if (!bytes) break;
        pass_on(*bytes);
        ++next_down_;
        any = true;
      }
      // One that was written twice, because its first answer was lost.
      if (number < next_down_) connection_.down.remove(number);
    }
    if (closes) {
      is_closed_ = true;
      ::shutdown(socket_.get(), SHUT_RDWR);
    }
    return any;
  }

  void pass_on(const std::string& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count =
          ::send(socket_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (count <= 0) return;  // the link is gone, and is noticed when it is read
      done += static_cast<std::size_t>(count);
    }
  }

  SpoolConnection connection_;
  Fd socket_;
  std::string said_;
  std::uint64_t next_up_{1};
  std::uint64_t next_down_{1};
  std::chrono::milliseconds pause_{kShortestPause};
  std::string last_trouble_;
  Clock::time_point seen_at_{Clock::now()};
  Clock::time_point link_closed_at_{};
  bool link_is_closed_{false};
  bool is_closed_{false};
};

void without_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

SpoolCarrier::SpoolCarrier(const std::string& spool, const wire::PilotName& pilot)
    : state_(std::make_shared<State>()) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  ours_ = Fd(ends[0]);
  ::fcntl(ours_.get(), F_SETFL, O_NONBLOCK);
  auto carry = [state = state_, theirs = Fd(ends[1]),
                folder =
                    spool + "/" + wire::spool_connection(pilot, wire::random_number())]() mutable {
    without_signals();
    Carrying(SpoolConnection(folder), std::move(theirs)).run();
    const std::lock_guard lock(state->mutex);
    state->has_ended = true;
    state->changed.notify_all();
  };
  try {
    std::thread(std::move(carry)).detach();
  } catch (const std::system_error&) {
    ours_.reset();
  }
}

void SpoolCarrier::wait_until_written(Clock::time_point until) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, until, [this] { return state_->has_ended; });
}

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
