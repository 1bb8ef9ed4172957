#include "dropbox_host/serve_box.hpp"

#include "dropbox_host/box_process.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// Lines of the engine's.
class FromEngine {
 public:
  /// Does not come back where there is none any more: what is at work is as if it had been killed.
  std::string next() {
    for (;;) {
      if (const auto end = text_.find('\n', looked_at_); end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        looked_at_ = 0;
        return line;
      }
      looked_at_ = text_.size();
      char piece[1U << 14U];
      const ssize_t size = ::recv(kHandedOver, piece, sizeof piece, 0);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) ::_exit(0);
      text_.append(piece, static_cast<std::size_t>(size));
    }
  }

 private:
  std::string text_;
  std::size_t looked_at_{0};
};

/// Held while this process lives: an engine waits with its drop boxes until those of the one before
/// it are gone.
void share_lock(const std::string& file) {
  const int lock = open_box_lock(file);
  if (lock >= 0) (void)::flock(lock, LOCK_SH);
  // An engine that ended before the signal was asked for has sent none, and another one may already
  // have found the lock free.
  pollfd engine{kHandedOver, 0, 0};
  if (::poll(&engine, 1, 0) > 0) ::_exit(0);
}

}  // namespace

void BoxWords::submit(DropboxTask task) {
  say("submit", json_of_struct(task));
}

void BoxWords::cancel(const std::string& key) {
  say("cancel", boost::json::value(key));
}

void BoxWords::warn(const std::string& text) {
  say("warn", boost::json::value(text));
}

void BoxWords::open(const Result<void>& opened) {
  const std::string first = opened ? message("opened", true)
                                   : message("refused", boost::json::value(opened.error().text));
  const std::lock_guard lock(mutex_);
  write(first + std::exchange(held_back_, {}));
  is_open_ = true;
}

void BoxWords::say(std::string_view key, boost::json::value value) {
  const std::string line = message(key, std::move(value));
  const std::lock_guard lock(mutex_);
  if (is_open_)
    write(line);
  else
    held_back_ += line;
}

void BoxWords::write(std::string_view lines) const {
  if (write_all(engine_, lines) != 0) ::_exit(0);
}

int open_box_lock(const std::string& file) {
  return ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int serve_box() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)std::signal(SIGPIPE, SIG_IGN);
  ::fcntl(kHandedOver, F_SETFD, FD_CLOEXEC);
  BoxWords to_engine(kHandedOver);
  FromEngine from_engine;
  try {
    const auto open = read_message(from_engine.next());
    share_lock(struct_of_json<std::string>(open.value().at("lock")));
    DropboxOptions options = struct_of_json<DropboxOptions>(open.value());
    options.warn = [&](const std::string& text) { to_engine.warn(text); };
    auto box = Dropbox::start(std::move(options), to_engine);
    to_engine.open(box ? Result<void>() : Result<void>(box.error()));
    if (!box) return 0;
    for (;;) {
      const auto said = read_message(from_engine.next());
      if (said.key() == "end") (*box)->task_ended(struct_of_json<DropboxTaskEnd>(said.value()));
      if (said.key() == "close") return 0;  // the box's own end waits for what is at work
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpcbatch: the process of a drop box ends: %s\n", error.what());
    ::_exit(1);
  }
}

}  // namespace hpcbatch
