// A small file beside the store that says how far it has come, so that less than that is missed.
// It is written behind each commit, before anybody is told of it, and costs no wait for the disk:
// what it says was on the disk before.
#pragma once

#include "store/file/log_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch::store {

struct MarkText {
  std::string boot;  ///< of the machine that wrote it: what is written survives all but its end
  Salts salts;       ///< of the log
  std::uint64_t synced{0}, written{0};  ///< frames of the log
  Sum synced_sum, written_sum;
  /// All of the log is in the database: it may be followed by one with the next salts.
  bool moved{false};
  bool closed{false};  ///< as `moved`, and the log may be gone
  bool has_sums{false};
  std::uint64_t highest{0};  ///< id of an array
  std::uint64_t starts{0};   ///< of engines
  std::string damage;        ///< one line, if any was found
};

std::string to_text(const MarkText& mark);
/// Nothing where its sum is wrong.
std::optional<MarkText> parse_mark(std::string_view text);

std::string boot_of_machine();

class Mark {
 public:
  explicit Mark(std::string file) : file_(std::move(file)) {}
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark();

  MarkText now;
  /// To the file; false where that failed: it is then to be tried again before the store changes.
  bool write(bool durable = false);
  bool is_stale() const { return stale_; }

 private:
  bool open();
  std::string file_;
  int descriptor_{-1};
  bool stale_{false};
  bool must_sync_{false};
};

// Tells a damaged store from one whose machine has lost its power: pure.

/// What lies on the disk before anything is opened.
struct FoundFiles {
  bool has_database{false};  ///< there, and not empty
  std::string first_page;    ///< of it; shorter where the file is
  LogState log;
  bool has_mark{false};
  std::optional<MarkText> mark;  ///< where it can be read
  std::string boot;              ///< of this machine, now
};

/// A store that was put back from a copy that `backup` or `fsck --salvage` has made: it is not in
/// WAL mode yet.
bool is_copy(std::string_view first_page);

/// Why the store must not be opened, as the end of a sentence; nothing where it may.  What may be
/// missing is what was not on the disk when the power went, and nobody was told of.
std::optional<std::string> damage_of(const FoundFiles& files);

}  // namespace hpcbatch::store
