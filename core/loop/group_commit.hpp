// What goes into one commit, and who is told of it when: collects while the store is busy, so that
// the more there is to do the more one commit carries.  No store, clock or thread: the writer
// drives it in real time, the tests of the whole system in theirs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace hpcbatch {

/// `Write` is what is saved, `Read` what is done with the store between two commits.
template <class Write, class Read>
class GroupCommit {
 public:
  using Then = std::function<void()>;
  struct Batch {
    std::vector<Write> writes;
    std::vector<std::pair<Read, Then>> written;
    std::vector<Then> durable;
    /// Leases and reads do not wait for the disk: whoever does gets a commit of his own behind
    /// them.
    bool in_two_steps() const { return !written.empty() && !durable.empty(); }
    bool needs_disk() const { return !durable.empty(); }
    bool needs_commit() const { return !writes.empty() || needs_disk(); }
  };
  /// When the next batch is to be taken: now behind what the loop has in hand, or within
  /// `kCompany`.
  enum class Due : std::uint8_t { Never, Soon, Now };
  static constexpr std::chrono::milliseconds kCompany{20};

  void add(Write write) { gathering_.writes.push_back(std::move(write)); }
  void after_written(Read read, Then then) {
    gathering_.written.emplace_back(std::move(read), std::move(then));
  }
  void after_durable(Then then, bool haste) {
    gathering_.durable.push_back(std::move(then));
    haste_ = haste_ || haste;
  }

  Due due() const {
    if (busy_ || (!gathering_.needs_commit() && gathering_.written.empty())) return Due::Never;
    return haste_ || !gathering_.written.empty() ? Due::Now : Due::Soon;
  }
  /// The store is busy with it until `done`.
  Batch take() {
    busy_ = true;
    haste_ = false;
    return std::exchange(gathering_, {});
  }
  void done() { busy_ = false; }
  /// Nothing is gathered and nothing under way.
  bool is_quiet() const {
    return !busy_ && !gathering_.needs_commit() && gathering_.written.empty();
  }

 private:
  Batch gathering_;
  bool haste_{false};
  bool busy_{false};
};

}  // namespace hpcbatch
