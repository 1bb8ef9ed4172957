// One direction of a connection that is carried by files: a folder of numbered pieces.
#pragma once

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

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
