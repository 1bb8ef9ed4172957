// Control groups (v1 or v2) with which a task's memory is limited and all its processes are found,
// where this process may make such groups.  One per slot, used again by the slot's next task.
#pragma once

#include "posix/files.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hpcbatch::pilot {

class ControlGroup {
 public:
  ControlGroup(std::string path, bool is_v2);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  /// All its files could be opened.
  bool is_usable() const { return static_cast<bool>(processes_) && static_cast<bool>(events_); }
  /// Where a process writes "0" to join.
  int joining() const { return processes_.get(); }
  /// 0: none.  False where the kernel refused.
  bool limit_memory(std::uint64_t bytes);
  /// How often a process of it was killed for its memory, ever: compare two readings.
  std::uint64_t memory_kills() const;
  /// What its processes hold: no cache of files, which the kernel takes back when it needs to.
  std::uint64_t memory() const;
  /// Living processes.
  std::vector<pid_t> members() const;

 private:
  std::string path_;
  bool is_v2_;
  std::uint64_t limit_{0};
  Fd processes_;
  Fd events_;
  Fd statistics_;
};

class ControlGroups {
 public:
  /// Looks for a place, removes groups that dead pilots left there with all that runs in them, and
  /// makes our own.
  ControlGroups();
  ~ControlGroups();
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  /// Null where groups cannot be made here.
  std::unique_ptr<ControlGroup> make(unsigned slot);
  /// How often the kernel killed a process for memory in the group that the pilot itself is in, and
  /// with it tasks that are in none of ours: a batch system may have set a limit there.
  std::uint64_t kills_around() const;
  /// For the log: which kind, or why none.
  const std::string& description() const { return description_; }

 private:
  void open_events_around(const std::string& group);
  bool make_own(const std::string& parent);
  bool split_v2(const std::string& parent);

  std::string own_;  // empty: none
  Fd lock_;          // held while we live: how others see that the group is not left over
  Fd events_around_;
  bool is_v2_{false};
  std::string returns_to_;  // v2: where this process came from
  std::string description_;
};

/// Kills what runs in the groups of dead pilots beside ours and removes them.
void remove_left_over_groups();

// The memory of this process itself, which its children are told to have used.
//
// A child borrows it until its program starts, and Linux counts that in the child's peak for good
// (getrusage(2), ru_maxrss; exec_mmap() in fs/exec.c): no child's peak is below ours.

/// So little may stand in a child's peak that is ours: it is as good as nothing.
inline constexpr std::uint64_t kAsGoodAsNothing = std::uint64_t{8} << 20;

/// Linux counts what is resident in batches, for each cpu.
inline constexpr std::uint64_t kCountedLate = std::uint64_t{1} << 20;

/// What a child itself has had in memory, bytes; 0 where that is not known.
constexpr std::uint64_t own_peak_of(std::uint64_t told, std::uint64_t ours) {
  return told > ours + kCountedLate || ours <= kAsGoodAsNothing ? told : 0;
}

class OwnMemory {
 public:
  /// Bytes; at least as much as a child that starts now will be told to have had.
  static std::uint64_t high_water();
  /// Once it has grown by more than a quarter since: gives back what is free, and counts anew.
  void keep_small();

 private:
  std::uint64_t kept_{kAsGoodAsNothing};
};

}  // namespace hpcbatch::pilot
