#include "dropbox_host/box_process.hpp"

#include "dropbox_host/serve_box.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <fmt/format.h>
#include <boost/asio/read_until.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace json = boost::json;

std::string message(std::string_view key, json::value value) {
  json::object object;
  object[key] = std::move(value);
  return json::serialize(object) + '\n';
}

json::key_value_pair read_message(std::string_view line) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  json::value value = json::parse(line, {}, options);
  json::object& object = value.as_object();
  if (object.size() != 1) throw std::invalid_argument("a message has one key");
  return *object.begin();
}

namespace {

constexpr std::chrono::seconds kLastWords{1};
constexpr std::chrono::milliseconds kLookAgain{20};

Error cannot(const std::string& why) {
  return {Error::Kind::Transient, "its process cannot be started: " + why};
}

Result<void> opened_by(const json::key_value_pair& said) {
  if (said.key() == "opened") return {};
  if (said.key() == "refused")
    return Error{Error::Kind::Rejected, std::string(said.value().as_string())};
  return cannot("it says what it does not say first");
}

}  // namespace

Result<void> BoxProcess::start(const DropboxOptions& options, const std::string& lock) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return cannot(std::strerror(errno));
  socket_.assign(asio::local::stream_protocol(), pair[0]);
  const Fd theirs(pair[1]);
  const int error = spawn_program({"hpcbatch", std::string(kServeBox), options.directory},
                                  {.program = "/proc/self/exe",
                                   .output = STDERR_FILENO,
                                   .handed_over = theirs.get(),
                                   .own_group = true,
                                   .as_from_a_shell = true},
                                  process_);
  if (error != 0) {
    process_ = 0;
    return cannot(std::strerror(error));
  }
  // glibc 2.36 declares pidfd_open without extern "C"; Linux before 5.3 has none.
  const int end = static_cast<int>(::syscall(SYS_pidfd_open, process_, 0));
  if (end >= 0) end_.assign(end);
  json::value settings = json_of_struct(options);
  settings.as_object()["lock"] = lock;
  lines_.push_back(message("open", std::move(settings)));
  return {};
}

Result<void> BoxProcess::wait(std::chrono::milliseconds longest) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + longest;
  if (const int error = write_all(socket_.native_handle(), lines_.front()))
    return cannot(std::strerror(error));
  lines_.pop_front();
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd ready{socket_.native_handle(), POLLIN, 0};
    const int count = left.count() <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left.count()));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0)
      return Error{Error::Kind::Transient,
                   fmt::format("its folders do not answer within {} s",
                               std::chrono::ceil<std::chrono::seconds>(longest).count())};
    char byte = 0;
    if (::recv(socket_.native_handle(), &byte, 1, 0) <= 0) return cannot("it ended");
    if (byte != '\n') {
      text_ += byte;
      continue;
    }
    return opened_by(read_message(std::exchange(text_, {})));
  }
}

void BoxProcess::listen(Events events, std::function<void(const Result<void>&)> opened) {
  events_ = std::move(events);
  opened_ = std::move(opened);
  collect();
  if (!lines_.empty()) write_next();
  read_next();
}

void BoxProcess::tell(const DropboxTaskEnd& end) {
  send(message("end", json_of_struct(end)));
}

void BoxProcess::close() {
  send(message("close", nullptr));
}

void BoxProcess::send(std::string line) {
  if (!socket_.is_open()) return;
  lines_.push_back(std::move(line));
  if (lines_.size() == 1) write_next();
}

void BoxProcess::write_next() {
  asio::async_write(
      socket_, asio::buffer(lines_.front()),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        if (error) return;  // reading hears of it, too
        self->lines_.pop_front();
        if (!self->lines_.empty()) self->write_next();
      });
}

void BoxProcess::read_next() {
  asio::async_read_until(
      socket_, asio::dynamic_buffer(text_), '\n',
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        if (error == asio::error::operation_aborted) return;
        if (error) return self->lost();
        const std::string line = self->text_.substr(0, size);
        self->text_.erase(0, size);
        try {
          self->heard(line);
        } catch (const std::exception& e) {
          if (self->events_.warn)
            self->events_.warn(
                fmt::format("what the process of a drop box says is damaged: {}", e.what()));
          return self->lost();
        }
        self->read_next();
      });
}

void BoxProcess::heard(const std::string& line) {
  const auto said = read_message(line);
  if (opened_) return std::exchange(opened_, nullptr)(opened_by(said));
  if (!events_.submit) return;
  if (said.key() == "submit") return events_.submit(struct_of_json<DropboxTask>(said.value()));
  if (said.key() == "cancel") return events_.cancel(std::string(said.value().as_string()));
  if (said.key() == "warn") return events_.warn(std::string(said.value().as_string()));
}

void BoxProcess::leave() {
  events_ = {};
  opened_ = nullptr;
  patience_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  end_.close(ignored);
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  // One that hangs in a file system does not die before that answers.
  ::waitpid(process_, nullptr, WNOHANG);
  process_ = 0;
}

void BoxProcess::lost() {
  if (!socket_.is_open()) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  patience_.cancel();
  if (process_ != 0) ::kill(process_, SIGKILL);
  if (opened_) std::exchange(opened_, nullptr)(cannot("it ended"));
  if (process_ == 0) return ended();
  if (!end_.is_open()) look_again();
}

void BoxProcess::look_again() {
  patience_.expires_after(kLookAgain);
  patience_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->process_ == 0) return;
    if (::waitpid(self->process_, nullptr, WNOHANG) == 0) return self->look_again();
    self->process_ = 0;
    self->ended();
  });
}

void BoxProcess::collect() {
  if (!end_.is_open()) return;
  end_.async_wait(asio::posix::stream_descriptor::wait_read,
                  [self = shared_from_this()](const boost::system::error_code& error) {
                    if (error || self->process_ == 0) return;
                    ::waitpid(self->process_, nullptr, 0);
                    self->process_ = 0;
                    if (!self->socket_.is_open()) return self->ended();
                    // What it said last may still be read; what it had started may hold the socket.
                    self->patience_.expires_after(kLastWords);
                    self->patience_.async_wait([self](const boost::system::error_code& stopped) {
                      if (!stopped) self->lost();
                    });
                  });
}

void BoxProcess::ended() {
  if (const Events events = std::exchange(events_, {}); events.ended) events.ended();
}

}  // namespace hpcbatch
