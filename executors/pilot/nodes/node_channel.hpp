// One encrypted connection between `node-run` and a member's agent, in pieces.
#pragma once

#include "posix/files.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/wire.pb.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

class NodeChannel {
 public:
  /// The descriptor blocks nowhere from now on, and notices an end that is gone within half a
  /// minute.
  NodeChannel(Fd socket, wire::Link link);

  int fd() const { return socket_.get(); }
  void send(const wire::NodePiece& piece);
  /// Writes what can be written; false: the other end is gone.
  bool flush();
  bool wants_to_write() const { return !pending_.empty() || link_.has_output(); }
  /// The other end has not taken so much that nobody should add more.
  bool is_full() const { return pending_.size() > kFull; }
  /// What has come; nothing: the other end is gone, or is none of ours.
  std::optional<std::vector<wire::NodePiece>> receive();

  /// Of a stream's data in one piece.
  static constexpr std::size_t kMostData = std::size_t{64} << 10;

 private:
  static constexpr std::size_t kFull = std::size_t{1} << 20;
  Fd socket_;
  wire::Link link_;
  std::string pending_;
};

}  // namespace hpcbatch::pilot
