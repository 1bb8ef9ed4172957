// Who owns the state directory: one engine, on one host, for as long as it lives.
#pragma once

#include <optional>
#include <string>
#include <variant>

namespace hpcbatch::store {

/// Why a state directory could not be had.
struct NotOwner {
  enum class Why {
    Here,       ///< an engine on this host has it, or is just taking it
    Elsewhere,  ///< an engine on another host has it
    Failed,     ///< the lock file cannot be opened or written
  };
  Why why{Why::Failed};
  std::string text;
};

/// How an engine runs, for whoever starts the next one should this one die.
struct EngineWays {
  std::string config{};  ///< the file that it has read; empty: none
  bool ends_when_idle{true};
};

/// Held until destroyed.  Not flock alone: some network file systems lack it or keep it to one
/// node.  All here blocks on the directory's file system; by one thread at a time.
class OwnerLock {
 public:
  /// Refused, with who holds it, while another engine lives: on this host as its process shows, on
  /// another host while its heartbeat is younger than ten minutes.
  static std::variant<OwnerLock, NotOwner> take(const std::string& directory, EngineWays ways = {});
  OwnerLock(OwnerLock&& other) noexcept;
  OwnerLock& operator=(OwnerLock&&) = delete;
  ~OwnerLock();

  /// To be called about once a minute.
  void renew(bool ends_when_idle);
  /// Makes the file again where somebody has removed or replaced it; where it cannot be had, as
  /// `take` refuses, which waits for an owner that is dying; this does not.
  std::optional<NotOwner> stand_again();

 private:
  static std::variant<OwnerLock, NotOwner> take(const std::string& directory, EngineWays ways,
                                                int looks);
  OwnerLock(std::string directory, int descriptor, EngineWays ways)
      : directory_(std::move(directory)), descriptor_(descriptor), ways_(std::move(ways)) {}
  bool is_in_place() const;

  std::string directory_;
  int descriptor_{-1};
  EngineWays ways_;
};

}  // namespace hpcbatch::store
