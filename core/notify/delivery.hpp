// A program that carries a message: started, and watched until it has ended or has taken too long.
#pragma once

#include "loop/asio.hpp"
#include "notify/message.hpp"
#include "posix/files.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace hpcbatch {

/// On the loop's thread, which it never holds up.  The program runs as our own user, in a process
/// group of its own.
class Delivery : public std::enable_shared_from_this<Delivery> {
 public:
  /// Nothing: the program ended with 0.  Else what went wrong, in words.
  using Then = std::function<void(std::optional<std::string>)>;

  explicit Delivery(asio::io_context& loop) : timer_(loop) {}
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  /// One that has not ended is killed.
  ~Delivery();

  /// Once; it lives until the program has ended, or `leave`.
  void start(const Parcel& parcel, std::chrono::seconds longest, Then then);
  /// It is killed, and `then` is not called.
  void leave();

 private:
  std::optional<std::string> spawn(const Parcel& parcel);
  void look_soon();
  void look();
  void listen();

  asio::steady_timer timer_;
  pid_t process_{0};
  Fd said_;
  std::string words_;  ///< the last that it said
  std::chrono::steady_clock::time_point until_;
  std::chrono::seconds longest_{};
  Then then_;
};

}  // namespace hpcbatch
