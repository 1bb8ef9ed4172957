// What `run` does with its own standard input: names it, forwards it, or leaves it out.
#pragma once

#include "documents/state_paths.hpp"
#include "posix/fd.hpp"

#include <string>
#include <thread>

namespace hpcbatch {

/// What a task is to get as its standard input.
struct OwnInput {
  enum class Kind {
    None,    ///< closed, /dev/null, or a terminal that belongs to somebody else
    File,    ///< a regular file, from its beginning: the task opens `path` itself
    Stream,  ///< a pipe, a terminal, the rest of a file: forwarded piece by piece
  };
  Kind kind{Kind::None};
  std::string path;
};

OwnInput look_at_input(int descriptor);

/// Sends all of a descriptor to a task's standard input, in a thread of its own, until it ends, the
/// task takes no more, or the forwarder is destroyed.
class InputForwarder {
 public:
  InputForwarder(const Places& places, const std::string& id, int source);
  ~InputForwarder();
  InputForwarder(const InputForwarder&) = delete;
  InputForwarder& operator=(const InputForwarder&) = delete;

 private:
  Fd stop_;
  std::jthread thread_;
};

}  // namespace hpcbatch
