// A file descriptor that closes itself, and writing all of a text to one.
#pragma once

#include <string_view>
#include <utility>

#include <unistd.h>

namespace hpcbatch {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_{-1};
};

/// Blocks until all is written, also where the descriptor does not block.  Returns errno, 0 for
/// success.
int write_all(int descriptor, std::string_view text);

}  // namespace hpcbatch
