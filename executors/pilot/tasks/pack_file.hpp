// This pilot's own log pack: records are gathered and written together, at the end of each round of
// the loop.  What cannot be written is kept and tried again for a while; only then is it lost.
#pragma once

#include "posix/files.hpp"
#include "wire/log_pack.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

class PackFile {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `name` is relative to `workspace`; the file is made when the first record is written.
  PackFile(std::string workspace, std::string name,
           std::chrono::milliseconds patience = std::chrono::minutes{10});

  const std::string& name() const { return name_; }

  /// Returns the record's place + 1; 0 where nothing is kept any more.
  std::uint64_t append(const wire::LogRecord& record, std::string_view bytes);
  /// Whether the record for which `append` returned this is in the file; 0 is none, and always is.
  bool holds(std::uint64_t place_and_one) const { return place_and_one <= written_; }
  void flush();
  /// At the end of the pilot: what cannot be written now is lost.
  void finish();
  /// It was given up: what `holds` not by now it never will.
  bool is_lost() const { return lost_; }
  /// Why nothing can be written now; empty: it can, or was given up.
  const std::string& trouble() const { return trouble_; }
  /// How long it is tried before it is given up, from the first failure on.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
  /// So much waits to be written that whoever can had better wait.
  bool is_full() const { return !lost_ && gathered_.size() >= kMostWaiting; }
  /// Calls once, when it is no longer full.
  void when_it_takes(std::function<void()> then) { waiting_.push_back(std::move(then)); }
  /// When to call `flush` again though nothing was appended.
  std::optional<Time> next() const { return retry_at_; }
  /// Bytes of a record, written or not.
  std::string read(std::uint64_t place, std::size_t length);

 private:
  static constexpr std::size_t kMostWaiting = std::size_t{8} << 20;

  bool open();
  bool write_gathered();
  void failed(int error);
  void lose();
  void wake();

  std::string workspace_;
  std::string name_;
  std::chrono::milliseconds patience_;
  Fd fd_;
  std::uint64_t written_{0};  // whole records
  std::string gathered_;
  std::optional<Time> failing_since_;
  std::optional<Time> retry_at_;
  std::string trouble_;
  bool lost_{false};
  std::vector<std::function<void()>> waiting_;
};

}  // namespace hpcbatch::pilot
