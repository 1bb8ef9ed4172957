// Standard input that comes in messages: a pipe that is filled as far as it takes.  The first is
// asked for once the task waits for it, more when the pipe is empty.
#pragma once

#include "pilot/base/loop.hpp"
#include "posix/fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
