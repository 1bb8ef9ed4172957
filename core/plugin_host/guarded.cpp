#include "plugin_host/guarded.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::array kFaults{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

// The handler looks at its own thread's.
thread_local const Doing* innermost = nullptr;

/// Of what a handler of signals may do (signal-safety(7)).
class Line {
 public:
  void add(const char* text) {
    const std::size_t size = std::min(std::strlen(text), text_.size() - used_);
    std::memcpy(text_.data() + used_, text, size);
    used_ += size;
  }
  void write() const { (void)!::write(STDERR_FILENO, text_.data(), used_); }

 private:
  std::array<char, 1024> text_{};
  std::size_t used_{0};
};

void name_and_end(int signal) {
  Line line;
  line.add("hpcbatch: this process ends by SIG");
  const char* name = ::sigabbrev_np(signal);
  line.add(name != nullptr ? name : "?");
  if (innermost != nullptr && innermost->is_in_plugin()) line.add(", by a fault in a plugin");
  for (const Doing* doing = innermost; doing != nullptr; doing = doing->outer()) {
    line.add(", while ");
    line.add(doing->text());
  }
  line.add("\n");
  line.write();
  // The handler is gone, and the signal comes as soon as this returns.
  ::raise(signal);
}

}  // namespace

Doing::Doing(const std::string& text, Code code) noexcept
    : text_(text.c_str()), code_(code), outer_(innermost) {
  innermost = this;
}

Doing::~Doing() {
  innermost = outer_;
}

void name_crashes() {
  struct sigaction action {};
  action.sa_handler = name_and_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kFaults) ::sigaction(signal, &action, nullptr);
}

}  // namespace hpcbatch
