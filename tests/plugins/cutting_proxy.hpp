// A proxy of bytes on 127.0.0.1 that counts what it carries and cuts connections on demand.
#pragma once

#include "sshd.hpp"

#include <array>
#include <atomic>
#include <thread>

#include <poll.h>

namespace hpcbatch {

class CuttingProxy {
 public:
  explicit CuttingProxy(int to) : to_(to), port_(Sshd::free_port()) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 8) != 0)
      throw std::runtime_error("the proxy cannot listen");
    thread_ = std::thread([this] { work(); });
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;
  ~CuttingProxy() {
    stop_ = true;
    thread_.join();
    ::close(listener_);
  }

  int port() const { return port_; }
  /// The connection that carries the last of so many more bytes ends with it.
  void cut_after(std::uint64_t bytes) { cut_at_[0] = carried_[0] + bytes; }
  void cut_back_after(std::uint64_t bytes) { cut_at_[1] = carried_[1] + bytes; }
  std::uint64_t forwarded() const { return carried_[0]; }
  int cuts() const { return cuts_; }

 private:
  using Pair = std::array<int, 2>;  // the client, the server

  void work() {
    std::vector<Pair> pairs;
    while (!stop_) {
      std::vector<pollfd> waits{{listener_, POLLIN, 0}};
      for (const Pair& pair : pairs) {
        waits.push_back({pair[0], POLLIN, 0});
        waits.push_back({pair[1], POLLIN, 0});
      }
      ::poll(waits.data(), waits.size(), 50);
      std::vector<Pair> kept;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const bool lives = (waits[1 + 2 * i].revents == 0 || carry(pairs[i], 0)) &&
                           (waits[2 + 2 * i].revents == 0 || carry(pairs[i], 1));
        if (lives) {
          kept.push_back(pairs[i]);
        } else {
          ::close(pairs[i][0]);
          ::close(pairs[i][1]);
        }
      }
      pairs = kept;
      if ((waits[0].revents & POLLIN) != 0)
        pairs.push_back({::accept(listener_, nullptr, nullptr), Sshd::connect_to(to_)});
    }
    for (const Pair& pair : pairs) {
      ::close(pair[0]);
      ::close(pair[1]);
    }
  }

  bool carry(const Pair& pair, std::size_t from) {
    std::array<char, 65536> buffer;
    const ssize_t n = ::recv(pair[from], buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    for (ssize_t done = 0; done < n;) {
      const ssize_t sent = ::send(pair[1 - from], buffer.data() + done,
                                  static_cast<std::size_t>(n - done), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      done += sent;
    }
    carried_[from] += static_cast<std::uint64_t>(n);
    if (cut_at_[from] == 0 || carried_[from] < cut_at_[from]) return true;
    cut_at_[from] = 0;
    ++cuts_;
    return false;
  }

  int to_;
  int port_;
  int listener_{-1};
  std::array<std::atomic<std::uint64_t>, 2> carried_{};
  std::array<std::atomic<std::uint64_t>, 2> cut_at_{};
  std::atomic<int> cuts_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace hpcbatch
