// What a command on another machine said, cut out of what its login shell and the server said
// around it.
#pragma once

#include "login.hpp"

#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace hpcbatch {

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
  using Take = std::function<void(Stream, std::string_view)>;
  /// Without `take` the answer is kept.
  explicit FramedAnswer(const Frame& frame, Take take = {});

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
  bool look_for_end(Stream stream, Part& part);
  void give(Stream stream, Part& part, std::size_t bytes);

  std::string begin_;
  std::string end_;
  Take take_;
  std::array<Part, 2> parts_;
  int group_{0};
  int exit_code_{-1};
};

/// Sends a script, then an input, and keeps the answer.
class Question : public Exchange {
 public:
  Question(const Frame& frame, std::string_view script, std::string_view input = {},
           FramedAnswer::Take take = {})
      : answer(frame, std::move(take)), script_(script), input_(input) {}

  std::string_view to_send() override { return script_.empty() ? input_ : script_; }
  void sent(std::size_t bytes) override {
    (script_.empty() ? input_ : script_).remove_prefix(bytes);
  }
  bool all_sent() const override { return script_.empty() && input_.empty(); }
  void received(Stream stream, std::string_view bytes) override { answer.received(stream, bytes); }
  bool is_over() const override { return answer.is_whole(); }

  FramedAnswer answer;

 protected:
  bool script_is_sent() const { return script_.empty(); }

 private:
  std::string_view script_;
  std::string_view input_;
};

}  // namespace hpcbatch
