// The streams of a task: what it prints, kept through a pipe, and input that comes in messages.
#pragma once

#include "pilot/base/loop.hpp"
#include "pilot/policy/attempt.hpp"
#include "pilot/tasks/pack_file.hpp"
#include "posix/files.hpp"
#include "wire/wire.pb.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace hpcbatch::pilot {

// One stream of one slot: a pipe that each of the slot's tasks in turn writes to, and what is kept
// of it.
//
// The pipe outlives the task, so the end of a task's output is not the pipe's end: it is there when
// all processes of the task are gone and the pipe is empty.

class Capture {
 public:
  /// `stream`: 1 stdout, 2 stderr.
  Capture(Loop& loop, PackFile& pack, unsigned stream);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// For a new task; the descriptor is what it is to write to (-1: no descriptors left).  `limit`:
  /// of what is longer, so many bytes and its end are kept, with a mark between; 0: all is.
  int begin(const AttemptId& id, std::uint64_t limit);
  /// The task is gone: take what is still in the pipe.
  void end();
  /// Into the pack what waits here.
  void flush();

  std::uint64_t kept() const { return base_ + buffer_.size(); }
  std::uint64_t last_place() const { return last_place_; }
  bool is_truncated() const { return lost_ || left_out_ != 0; }
  /// Bytes beyond the limit that are neither in the beginning nor in the end.
  std::uint64_t left_out() const { return left_out_; }
  /// Some of it was not written and never will be.
  bool is_lost() const { return lost_; }
  /// Up to `limit` bytes from `offset` on.
  std::string read(std::uint64_t offset, std::size_t limit) const;

 private:
  struct Piece {
    std::uint64_t offset;
    std::uint64_t place;
    std::uint32_t length;
  };
  bool make_pipe();
  /// Takes what is there, up to a bound, so that no task starves the others; false when the pipe is
  /// empty.
  bool take_some();
  void keep(std::string_view bytes);
  /// What the task prints stays in its pipe, and the task waits, until the pack takes it.
  void pause();
  void keep_beyond_limit(std::string_view bytes);
  void add_tail();

  Loop& loop_;
  PackFile& pack_;
  unsigned stream_;
  Fd reading_;
  Fd writing_;
  AttemptId id_;
  bool active_{false};
  std::uint64_t limit_{0};
  std::uint64_t base_{0};  // offset of the buffer's first byte
  std::string buffer_;
  std::vector<Piece> pieces_;
  std::uint64_t last_place_{0};
  bool is_beyond_{false};  // the limit is reached
  std::string tail_;       // the last of what came since
  std::uint64_t left_out_{0};
  bool lost_{false};
  bool paused_{false};
};

// Standard input that comes in messages: a pipe that is filled as far as it takes.  The first is
// asked for once the task waits for it, more when the pipe is empty.

class StreamedInput {
 public:
  using Wanted = std::function<void(std::uint64_t offset, bool ended)>;

  /// `wanted` is called when all that was given is in the pipe: how many bytes that is, and whether
  /// its end was given.
  StreamedInput(Loop& loop, Wanted wanted) : loop_(loop), wanted_(std::move(wanted)) {}
  ~StreamedInput();
  StreamedInput(const StreamedInput&) = delete;
  StreamedInput& operator=(const StreamedInput&) = delete;

  /// The task's end; empty where no pipe could be made.
  Fd open();
  /// Its inode; 0: none was made.
  ino_t pipe() const { return pipe_; }
  /// The task waits for it.
  void asked();
  /// `offset`: of the first byte.  What was given before is skipped; what would leave a gap is not
  /// taken.
  void give(std::string_view bytes, std::uint64_t offset, bool end);
  /// Calls `wanted` again, for an engine that may not have heard it; not before it was asked for.
  void want_again() const;

 private:
  void push();
  void close();

  Loop& loop_;
  Wanted wanted_;
  Fd writing_;
  std::string waiting_;
  std::uint64_t given_{0};
  bool ends_{false};
  bool watched_{false};
  bool asked_{false};
  ino_t pipe_{0};
};

// Output that somebody watches: sent as it comes, from any offset on, and never more than the link
// takes.

class Followers {
 public:
  /// Up to `limit` bytes of a stream of a task that runs, from `offset` on; nothing where the task
  /// does not run.
  using ReadRunning = std::function<std::optional<std::string>(
      const AttemptId&, unsigned stream, std::uint64_t offset, std::size_t limit)>;
  using Send = std::function<void(wire::Chunk)>;

  Followers(PackFile& pack, ReadRunning read) : pack_(pack), read_(std::move(read)) {}

  void follow(const AttemptId& id, std::uint64_t out_offset, std::uint64_t err_offset);
  void stop(const AttemptId& id) { followed_.erase(id); }
  void stop_all() { followed_.clear(); }
  /// The task has ended; the rest is where `log` says.
  void ended(const AttemptId& id, const wire::LogPlace& log);
  bool is_followed(const AttemptId& id) const { return followed_.contains(id); }
  bool any() const { return !followed_.empty(); }

  /// Sends what there is, at most `room` bytes.  Tasks that ended are forgotten when all of theirs
  /// is sent.
  /// True where there may be more than that.
  bool send(std::size_t room, const Send& send);

 private:
  struct Followed {
    std::array<std::uint64_t, 2> sent{};
    std::optional<wire::LogPlace> log;  // ended
  };
  std::string read(const AttemptId& id, const Followed& followed, unsigned stream,
                   std::size_t limit);

  PackFile& pack_;
  ReadRunning read_;
  std::map<AttemptId, Followed> followed_;
};

}  // namespace hpcbatch::pilot
