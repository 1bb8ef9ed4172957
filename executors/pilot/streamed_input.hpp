// Standard input that comes in messages: a pipe that is filled as far as it takes, and asks for
// more when it is empty.
#pragma once

#include "fd.hpp"
#include "loop.hpp"

#include <functional>
#include <string>

namespace hpcbatch::pilot {

class StreamedInput {
 public:
  /// `wanted` is called when all that was given is in the pipe.
  StreamedInput(Loop& loop, std::function<void()> wanted)
      : loop_(loop), wanted_(std::move(wanted)) {}
  ~StreamedInput();
  StreamedInput(const StreamedInput&) = delete;
  StreamedInput& operator=(const StreamedInput&) = delete;

  /// The task's end; empty where no pipe could be made.
  Fd open();
  void give(const std::string& bytes, bool end);

 private:
  void push();
  void close();

  Loop& loop_;
  std::function<void()> wanted_;
  Fd writing_;
  std::string waiting_;
  bool ends_{false};
  bool watched_{false};
};

}  // namespace hpcbatch::pilot
