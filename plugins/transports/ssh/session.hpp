// One login by libssh.  Nothing here blocks beyond a deadline: the library is asked without
// waiting, and the waiting is ours.
#pragma once

#include "../common/process.hpp"
#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

namespace hpcbatch {

struct SshSettings {
  std::string host;
  int port{22};
  std::string user;
  std::string target;  ///< what errors call it
  std::vector<std::string> identities;
  std::string certificate;
  std::string known_hosts;  ///< empty: the user's own and the system's
  bool agent{true};
  std::chrono::seconds keep_alive{30};
  std::chrono::seconds connect_timeout{15};
};

class Session {
 public:
  /// Connected to the server whose key is known, and let in.
  static Result<std::unique_ptr<Session>> log_in(const SshSettings& settings, Deadline deadline);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  ssh_session get() const { return session_; }
  /// Asks again until the library has an answer other than `again`, which stands for too late.
  template <class Call>
  int finish(Call call, Deadline deadline, int again = SSH_AGAIN) {
    for (;;) {
      const int answer = call();
      if (answer != again || std::chrono::steady_clock::now() >= deadline) return answer;
      wait(deadline);
    }
  }
  /// Sleeps until the connection or one of the others has something.
  void wait(Deadline until, std::span<pollfd> others = {});

  /// A call begins, or something has waited: silence is counted from here.
  void listen_anew();
  /// Knocks where it is silent; false when that was in vain three times, or the connection is lost.
  bool is_alive();
  bool was_heard() const { return heard_.in_bytes != heard_before_; }
  std::string error() const { return ssh_get_error(session_); }

 private:
  explicit Session(const SshSettings& settings);
  Result<void> connect(const SshSettings& settings, Deadline deadline);
  Result<void> check_host_key(const SshSettings& settings) const;
  std::string fingerprint() const;
  /// Of the key that it has shown.
  std::string known_hosts_line() const;

  ssh_session session_;
  ssh_counter_struct heard_{};
  std::uint64_t heard_before_{0};
  std::uint64_t heard_last_{0};
  std::chrono::seconds keep_alive_;
  std::chrono::steady_clock::time_point heard_at_;
  std::chrono::steady_clock::time_point knocked_at_;
};

// A TCP connection that is made within a deadline and does not stay when its other end is gone.

/// `target` is what errors call it.  The look-up of the name alone cannot be cut short.
Result<Fd> connect_tcp(const std::string& host, int port, const std::string& target,
                       std::chrono::seconds keep_alive, Deadline deadline);

// Moves bytes between a descriptor and a channel, each as fast as the other takes them.

class Pump {
 public:
  /// `first` came from the far side before.
  Pump(Session& session, int near, ssh_channel far, std::string first);
  /// Until either end is closed or the connection is lost.
  void run();

 private:
  void take_near();
  bool give_far();
  void take_far();
  bool give_near();
  bool wait();

  Session& session_;
  int near_;
  ssh_channel far_;
  /// Filled anew when all of it has gone.
  struct OnTheWay {
    std::string bytes;
    std::size_t gone{0};
    std::string_view left() const { return std::string_view(bytes).substr(gone); }
    char* room(std::size_t most);
    void filled(std::size_t size) { bytes.resize(size); }
  };
  OnTheWay to_far_;
  OnTheWay to_near_;
  bool near_has_ended_{false};
  bool eof_is_sent_{false};
};

/// The far side has ended, and all that it said was taken.
bool is_closed(ssh_channel channel);

}  // namespace hpcbatch
