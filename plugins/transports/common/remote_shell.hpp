// The shell text of one remote command, and what comes back of it.  Pure: no file, process or
// connection is touched here.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "login.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// What a command on another machine said, cut out of what its login shell and the server said
// around it.

/// The lines between which an answer stands, on both streams.  Nobody can print them who was not
/// told the nonce.
struct Frame {
  std::string nonce;
  std::string begin() const { return "hpcbatch-begin-" + nonce; }
  std::string end() const { return "hpcbatch-end-" + nonce; }
};
Frame new_frame();

/// Reads streams of the form `anything BEGIN GROUP\n the answer END CODE\n anything`.
class FramedAnswer {
 public:
  explicit FramedAnswer(const Frame& frame)
      : begin_(frame.begin() + " "), end_(frame.end() + " ") {}

  void received(Stream stream, std::string_view bytes);
  /// On one stream at least: the command may have run.
  bool has_begun() const;
  /// On both streams: all of the answer is there.
  bool is_whole() const;
  /// The process group there; 0 before the beginning.
  int group() const { return group_; }
  int exit_code() const { return exit_code_; }
  std::string& kept(Stream stream) { return part(stream).kept; }
  /// The end of what was said around the answer.
  const std::string& around(Stream stream) const {
    return parts_[static_cast<std::size_t>(stream)].around;
  }

 private:
  enum class Where : std::uint8_t { Before, Within, After };
  struct Part {
    Where where{Where::Before};
    std::string pending;
    std::string kept;
    std::string around;
  };
  Part& part(Stream stream) { return parts_[static_cast<std::size_t>(stream)]; }
  bool look_for_begin(Part& part);
  bool look_for_end(Part& part);

  std::string begin_;
  std::string end_;
  std::array<Part, 2> parts_;
  int group_{0};
  int exit_code_{-1};
};

/// Sends a script, then an input, and keeps the answer.
class Question : public Exchange {
 public:
  Question(const Frame& frame, std::string_view script, std::string_view input = {})
      : answer(frame), script_(script), input_(input) {}

  std::string_view to_send() override { return script_.empty() ? input_ : script_; }
  void sent(std::size_t bytes) override {
    (script_.empty() ? input_ : script_).remove_prefix(bytes);
  }
  bool all_sent() const override { return script_.empty() && input_.empty(); }
  void received(Stream stream, std::string_view bytes) override { answer.received(stream, bytes); }
  bool is_over() const override { return answer.is_whole(); }

  FramedAnswer answer;

 private:
  std::string_view script_;
  std::string_view input_;
};

/// The script is always sent by standard input: arguments are seen by everybody on a login node,
/// and the shells that users choose quote each in its own way.
enum class InputAfterScript : std::uint8_t { No, Yes };
enum class FarEnvironment : std::uint8_t { Minimal, Users };

/// What is given to the login shell, whichever it is: reads a script of that many bytes and runs
/// it with sh.  Of a script that was cut off nothing runs.
std::string starter(std::size_t script_size, InputAfterScript after, FarEnvironment environment);

/// The body between the lines of the frame; its exit status is the answer's.  Whatever becomes of
/// the connection, it and what it started are killed after `limit`.
std::string framed(const Frame& frame, const std::string& body, std::chrono::milliseconds limit);

/// A command with its environment.
std::string command_script(const Frame& frame, const CommandLine& command,
                           const std::map<std::string, std::string>& environment,
                           std::chrono::milliseconds limit);
/// A command that becomes the stream behind the frame's first line.
std::string stream_script(const Frame& frame, const CommandLine& command,
                          const std::map<std::string, std::string>& environment);
/// Ends the group and all else of the session that it leads.
std::string kill_script(const Frame& frame, int group, std::chrono::milliseconds limit);

/// Asks the user's login shell for what commands of batch systems need.
std::string environment_script(const Frame& frame, std::chrono::milliseconds limit);
/// Nothing where the login shell did not answer.
std::optional<std::map<std::string, std::string>> read_environment(const Frame& frame,
                                                                   std::string_view output);

}  // namespace hpcbatch
