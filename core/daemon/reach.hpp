// What verbs find the engine by, its lock and its socket: others may remove both while it runs.
#pragma once

#include "api/http_server.hpp"
#include "documents/state_paths.hpp"
#include "loop/asio.hpp"
#include "store/owner.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// Makes the directory if it is not there, for its owner alone.  A sentence that says why it cannot
/// be used: others could look or write, or it cannot be made.
std::optional<std::string> own_directory(const std::string& path);

/// Keeps the engine in reach.  Logging out removes $XDG_RUNTIME_DIR, and the socket with it, and
/// only root can make that again: then the engine listens in its home, where every verb looks too.
/// On the loop's thread; all that is named outlives this.
class Reach {
 public:
  Reach(asio::io_context& loop, const Places& places, HttpServer& server, store::OwnerLock& lock)
      : timer_(loop), places_(places), server_(server), lock_(lock) {}

  /// Looks every two seconds from then on.
  void begin();

 private:
  void look();
  bool has_lock();
  void listen_again();

  asio::steady_timer timer_;
  const Places& places_;
  HttpServer& server_;
  store::OwnerLock& lock_;
  bool is_in_home_{false};  ///< its own place cannot be had
  std::string told_;        ///< the trouble that was logged last: each is logged once
};

/// A shell without XDG_RUNTIME_DIR looks for the socket in the home.
void link_socket(const Places& places);

}  // namespace hpcbatch
