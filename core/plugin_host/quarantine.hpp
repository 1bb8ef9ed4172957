// Sets a plugin's object aside after three failures in a row, so that one bad plugin cannot keep
// its site busy.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace hpcbatch {

/// Counts the failures of one object.  Once it is set aside it stays so; whoever wants it back
/// makes a new object.
class Quarantine {
 public:
  static constexpr unsigned kAllowedInARow = 3;

  void succeeded() { in_a_row_ = 0; }
  void failed(std::string reason) {
    if (++in_a_row_ >= kAllowedInARow && !reason_) reason_ = std::move(reason);
  }
  /// Why the object is set aside; nothing while it may be called.
  const std::optional<std::string>& reason() const { return reason_; }

 private:
  unsigned in_a_row_{0};
  std::optional<std::string> reason_;
};

}  // namespace hpcbatch
