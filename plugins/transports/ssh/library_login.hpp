// A login by libssh, kept and used by every call, and made again after it was lost.
#pragma once

#include "../common/login.hpp"
#include "../common/process.hpp"
#include "session.hpp"

#include <atomic>
#include <list>
#include <mutex>
#include <thread>

namespace hpcbatch {

struct ChannelFree {
  void operator()(ssh_channel channel) const {
    // One that the server refused has no number there: the library would end the first that has.
    if (ssh_channel_is_open(channel) != 0) ssh_channel_close(channel);
    ssh_channel_free(channel);
  }
};
/// Goes before the session that it belongs to.
using Channel = std::unique_ptr<ssh_channel_struct, ChannelFree>;

class LibraryLogin final : public Login {
 public:
  explicit LibraryLogin(SshSettings settings) : settings_(std::move(settings)) {}
  LibraryLogin(const LibraryLogin&) = delete;
  LibraryLogin& operator=(const LibraryLogin&) = delete;
  ~LibraryLogin() override;

  Result<Ending> exec(const std::string& text, Exchange& exchange, Deadline deadline) override;
  Result<int> open(const std::string& text, const std::string& input, const std::string& line,
                   Deadline deadline) override;
  std::uint64_t number() const override { return logins_; }
  const std::string& name() const override { return settings_.target; }

 private:
  /// A stream that somebody holds the other end of; a thread of its own moves its bytes.
  struct Talk {
    std::mutex mutex;  ///< of what follows, which the thread closes at its end
    Fd ours;
    std::atomic<bool> is_over{false};
    std::thread thread;
  };
  struct Opened {
    Result<Channel> channel;
    bool is_refused{false};  ///< by a server that goes on with the connection
  };

  Result<void> be_logged_in(Deadline deadline);
  Result<Channel> open_channel(const std::string& text, Deadline deadline);
  Opened try_channel(const std::string& text, Deadline deadline);
  Opened try_until_free(const std::string& text, Deadline deadline);
  Result<Channel> open_on_new_login(const std::string& text, Deadline deadline);
  Result<Ending> carry(ssh_channel channel, Exchange& exchange, Deadline deadline);
  void end_there(ssh_channel channel);
  void forget_ended();

  SshSettings settings_;
  BackOff back_off_;
  std::uint64_t logins_{0};
  std::unique_ptr<Session> session_;  // of calls; that of a stream is its own
  std::list<Talk> talks_;
};

}  // namespace hpcbatch
