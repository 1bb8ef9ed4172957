// Carries a link by files where nothing may connect to anything: moves bytes between a socket of
// this process and the folders of one connection.  On a thread of its own, because a file system
// may hang.
#pragma once

#include "hpcbatch/result.hpp"
#include "posix/files.hpp"
#include "wire/encrypted_link.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

class SpoolCarrier {
 public:
  /// `spool`: the site's folder.  Nothing is waited for.
  SpoolCarrier(const std::string& spool, const wire::PilotName& pilot);
  SpoolCarrier(const SpoolCarrier&) = delete;
  SpoolCarrier& operator=(const SpoolCarrier&) = delete;
  /// The thread ends by itself when the link's socket is closed.
  ~SpoolCarrier() = default;

  /// The link's end, once; it does not block.  Empty where no descriptors or threads are left.
  Fd take_socket() { return std::move(ours_); }
  /// Waits until what was said before the socket was closed has been written, or until then.
  void wait_until_written(std::chrono::steady_clock::time_point until);

 private:
  // The thread may outlive this object.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool has_ended{false};
  };
  Fd ours_;
  std::shared_ptr<State> state_;
};

// One direction of a connection that is carried by files: a folder of numbered pieces.

class SpoolBox {
 public:
  explicit SpoolBox(std::string folder) : folder_(std::move(folder)) {}

  Result<void> make() const;
  /// Whole or not at all; the same piece again is no error.
  Result<void> put(std::uint64_t number, std::string_view bytes) const;
  /// Numbers of the pieces that are there, in order; no value where the folder is not.  The folder
  /// is opened anew each time: NFS looks at it afresh only then (nfs(5), close-to-open).
  std::optional<std::vector<std::uint64_t>> numbers() const;
  /// No value: it is not there as a whole yet.
  std::optional<std::string> take(std::uint64_t number) const;
  void remove(std::uint64_t number) const;

 private:
  std::string path_of(std::uint64_t number) const;
  std::string folder_;
};

/// The folders of one connection, below the site's spool.
struct SpoolConnection {
  explicit SpoolConnection(const std::string& at);
  SpoolConnection(const std::string& spool, const std::string& name)
      : SpoolConnection(spool + "/" + name) {}

  std::string folder;
  SpoolBox up;    ///< from the pilot
  SpoolBox down;  ///< to the pilot
  /// The engine wants no more of this connection.
  bool is_closed() const;
  /// Whoever lives has seen it by now.
  bool was_closed_long_ago() const;
  /// False too where it cannot be told.
  bool is_gone() const;
  void close() const;
  void remove_all() const;
};

}  // namespace hpcbatch::pilot
