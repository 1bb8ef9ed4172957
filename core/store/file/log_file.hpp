// SQLite's write-ahead log as it lies on the disk (sqlite.org/fileformat2.html, section 4): SQLite
// stops at the first block that is bad and says nothing of what lies behind it.
#pragma once

#include "store/file/page_sums.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::store {

struct Salts {
  std::uint32_t first{0}, second{0};
  friend bool operator==(const Salts&, const Salts&) = default;
};

/// A frame holds a page as one commit has left it.
struct LogFrame {
  std::uint32_t page{0};
  std::uint32_t pages{0};  ///< of the database, where the frame ends a commit; else 0
  Salts salts;
  Sum sum;  ///< as written: of all frames up to and with this one
};

inline constexpr std::size_t kLogHeader = 32;
inline constexpr std::size_t kFrameHeader = 24;

/// Bytes of a log; they must outlive it.
class LogView {
 public:
  explicit LogView(std::string_view bytes);
  /// Without it nothing is in the log, for SQLite.
  bool has_header() const { return has_header_; }
  Salts salts() const { return salts_; }
  Sum seed() const { return seed_; }
  /// That the file has room for, whatever is in them.
  std::size_t frames() const { return frames_; }
  LogFrame frame(std::size_t at) const;
  std::string_view page(std::size_t at) const;
  /// What of the frame its sum is of.
  std::string summed(std::size_t at) const;
  Words words() const { return words_; }
  /// What the frame's sum has to be, if `before` is that of the one before.
  Sum sum_behind(Sum before, std::size_t at) const;

 private:
  const char* start_of(std::size_t at) const;
  std::string_view bytes_;
  bool has_header_{false};
  Words words_{Words::Little};
  Salts salts_;
  Sum seed_;
  std::size_t frames_{0};
};

/// What a log is worth.
struct LogState {
  std::uint64_t bytes{0};
  bool has_header{false};
  Salts salts;
  std::vector<Sum> sums;       ///< of the frames that follow from one another, from the first on
  std::uint64_t behind{0};     ///< frames of the same log behind the first that does not
  bool has_first_page{false};  ///< of the database, among those of finished commits
};
LogState state_of_log(std::string_view bytes);

/// Of frame `number`, counted from 1; nothing where it cannot be read.
std::optional<LogFrame> read_frame(int descriptor, std::uint64_t number);

/// Empty where there is none; throws std::runtime_error where it cannot be read.
std::string read_whole(const std::string& file);

}  // namespace hpcbatch::store
