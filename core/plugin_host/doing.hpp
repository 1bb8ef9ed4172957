// What a thread does: named in the log where a fault ends our process by a signal.
#pragma once

#include <string>

namespace hpcbatch {

/// Lives on the stack for as long as it is done; those of a thread are nested.  `text` outlives it.
class Doing {
 public:
  enum class Code { Ours, Plugin };
  explicit Doing(const std::string& text, Code code = Code::Ours) noexcept;
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

  const char* text() const noexcept { return text_; }
  const Doing* outer() const noexcept { return outer_; }
  bool is_in_plugin() const noexcept { return code_ == Code::Plugin; }

 private:
  const char* text_;
  Code code_;
  const Doing* outer_;
};

/// From now on a signal by which a fault ends this process is named on standard error, with what its
/// thread did; the process ends by it all the same.
void name_crashes();

}  // namespace hpcbatch
