#include "fake_engine.hpp"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace hpcbatch::test {
namespace {

int listen_at(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const int folder = ::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const std::string name = "/proc/self/fd/" + std::to_string(folder) + path.substr(slash);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_good =
      folder >= 0 && ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener, 64) == 0;
  const std::string reason = std::strerror(errno);
  ::close(folder);
  if (!is_good) throw std::runtime_error("cannot listen at " + path + ": " + reason);
  return listener;
}

/// Takes the first complete request off `buffer`.
std::optional<FakeRequest> take_request(std::string& buffer) {
  const std::size_t end = buffer.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  std::size_t length = 0;
  if (const std::size_t at = buffer.find("Content-Length: "); at < end) {
    length = std::strtoull(buffer.c_str() + at + 16, nullptr, 10);
  }
  if (buffer.size() < end + 4 + length) return {};
  FakeRequest request;
  const std::size_t first = buffer.find(' ');
  const std::size_t second = buffer.find(' ', first + 1);
  request.method = buffer.substr(0, first);
  request.target = buffer.substr(first + 1, second - first - 1);
  request.body = buffer.substr(end + 4, length);
  buffer.erase(0, end + 4 + length);
  return request;
}

}  // namespace

void FakeConnection::send(std::string_view text) {
  while (!text.empty() && !is_hung_up_) {
    const ssize_t size = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

void FakeConnection::answer(int status, std::string_view body) {
  send("HTTP/1.1 " + std::to_string(status) +
       " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

void FakeConnection::begin_chunks() {
  send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void FakeConnection::chunk(std::string_view text) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  send(size + std::string(text) + "\r\n");
}

void FakeConnection::end_chunks() {
  send("0\r\n\r\n");
}

void FakeConnection::hang_up() {
  is_hung_up_ = true;
  ::shutdown(socket_, SHUT_RDWR);
}

FakeEngine::FakeEngine(const std::string& socket_path, Handler handler)
    : handler_(std::move(handler)),
      listener_(listen_at(socket_path)),
      acceptor_([this] { accept_all(); }) {}

FakeEngine::~FakeEngine() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

void FakeEngine::accept_all() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    if (is_ending_) return;
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void FakeEngine::serve(int socket) {
  FakeConnection connection(socket);
  std::string buffer;
  char piece[4096];
  for (;;) {
    const ssize_t size = ::recv(socket, piece, sizeof piece, 0);
    if (size <= 0) return;
    buffer.append(piece, static_cast<std::size_t>(size));
    while (auto request = take_request(buffer)) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(*request);
      }
      asked_.notify_all();
      handler_(*request, connection);
      if (connection.is_hung_up()) return;
    }
  }
}

std::vector<FakeRequest> FakeEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t FakeEngine::connections() const {
  const std::lock_guard lock(mutex_);
  return sockets_.size();
}

FakeRequest FakeEngine::wait_for(const std::string& method,
                                 const std::string& target_prefix) const {
  std::unique_lock lock(mutex_);
  for (std::size_t looked_at = 0;;) {
    for (; looked_at < requests_.size(); ++looked_at) {
      const FakeRequest& request = requests_[looked_at];
      if (request.method == method && request.target.starts_with(target_prefix)) return request;
    }
    asked_.wait(lock);
  }
}

}  // namespace hpcbatch::test
