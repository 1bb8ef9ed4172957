// Says what is waited for where a step takes long that nothing can interrupt: a file system that
// hangs answers nobody.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace hpcbatch {

/// `tell` is called with `text`, in a thread of its own, once this has lived for `patience`.
class SlowNote {
 public:
  using Tell = std::function<void(const std::string& text)>;
  static constexpr std::chrono::seconds kPatience{10};

  /// On standard error: "hpcbatch: waits for TEXT".
  explicit SlowNote(std::string text) : SlowNote(std::move(text), kPatience, on_standard_error) {}
  SlowNote(std::string text, std::chrono::milliseconds patience, Tell tell);

 private:
  static void on_standard_error(const std::string& text);

  std::jthread thread_;
};

}  // namespace hpcbatch
