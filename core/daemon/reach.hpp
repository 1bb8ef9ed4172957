// What verbs find the engine by, its lock and its socket: others may remove both while it runs.
#pragma once

#include "api/http/http_server.hpp"
#include "documents/state_paths.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "store/owner.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// Makes the directory if it is not there, for its owner alone.  A sentence that says why it cannot
/// be used: others could look or write, or it cannot be made.
std::optional<std::string> own_directory(const std::string& path);

/// Keeps the engine in reach.  Logging out removes $XDG_RUNTIME_DIR, and the socket with it, and
/// only root can make that again: then the engine listens in its home, where every verb looks too.
/// On the loop's thread; a home that hangs holds up only a thread of its own.  All that is named
/// outlives this, and nobody else uses the lock meanwhile.
class Reach {
 public:
  Reach(asio::io_context& loop, const Places& places, std::string trust_group, HttpServer& server,
        store::OwnerLock& lock)
      : loop_(loop),
        timer_(loop),
        places_(places),
        trust_group_(std::move(trust_group)),
        server_(server),
        lock_(lock) {}

  /// Links the socket, which blocks, and looks every two seconds from then on.
  void begin();
  /// As the lock's own.
  void renew_lock(bool ends_when_idle);

 private:
  /// What one look has come to; empty: nothing.
  struct Found {
    std::string no_lock{};  ///< why it cannot be had again
    std::optional<ListeningSocket> made{};
    std::string no_socket{};
    std::string no_link{};
    std::vector<std::string> said{};  ///< what the guard does not refuse
  };
  void look_later();
  Found look(const SocketFile& file) const;
  void listen_again(Found& found) const;
  Result<ListeningSocket> listen_again_in_place(const std::string& path,
                                                std::vector<std::string>& said) const;
  void take(Found found);
  void tell(const Found& found);

  asio::io_context& loop_;
  asio::steady_timer timer_;
  const Places& places_;
  std::string trust_group_;
  HttpServer& server_;
  store::OwnerLock& lock_;
  Found told_;  ///< what was logged last: each trouble is logged once
  Lane lane_;   ///< Last: its work in hand uses what stands above.
};

}  // namespace hpcbatch
