#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/show/terminal.hpp"
#include "documents/state_paths.hpp"
#include "posix/files.hpp"

#include <boost/json/object.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

namespace hpcbatch {

// Follows one task of our own to its end: its output goes to ours, and when we are told to end, so
// is it.

class StreamedTask {
 public:
  enum class Why { Ended, Interrupted, OutputClosed };
  struct End {
    Why why{Why::Ended};
    std::optional<boost::json::object> task;  ///< as it ended; always there with Ended
    int signal{0};                            ///< of Interrupted
    bool is_cancelled{false};                 ///< the engine was told to end the task
    int error{0};                             ///< of OutputClosed
  };

  StreamedTask(EngineClient& client, const Session& session, std::string id)
      : client_(client), session_(session), id_(std::move(id)) {}

  /// Survives a restart of the engine: each byte of the output is written once.  Throws
  /// CommandError where the engine stays away.
  End stream();

 private:
  using Clock = std::chrono::steady_clock;

  /// What one line of the stream, or its failure, brought; no value to go on.
  std::optional<End> take(const LineStream::Next& next);
  std::optional<End> take_line(const std::string& line);
  std::optional<End> interrupted();
  /// The error of the system, or 0.
  int write(std::size_t stream, std::string_view bytes);
  void cancel();
  void show_waiting();
  void tell_waiting(const std::string& state, std::string text);
  std::optional<End> reconnect();
  End interrupted_end() const;
  std::chrono::milliseconds patience() const;

  EngineClient& client_;
  const Session& session_;
  std::string id_;
  StatusLine status_;
  bool is_waiting_{true};  ///< as far as we know; its state is then worth showing
  std::string told_;       ///< why it waits, as it was said last
  std::array<std::uint64_t, 2> written_{};
  std::array<std::uint64_t, 2> to_skip_{};  ///< of what a new stream repeats
  int signal_{0};
  Clock::time_point give_up_{};
  bool is_cancelled_{false};
  bool is_broken_{false};
};

/// Cancels what this submit queued, if it did, without waiting long for the engine.
void withdraw(const Places& places, const boost::json::object& request);

// What `run` does with its own standard input: names it, forwards it, or leaves it out.

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
