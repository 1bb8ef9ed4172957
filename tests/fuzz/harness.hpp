// What a fuzzer and the unit tests try alike: one function per format that comes from outside, from any
// bytes to nothing, or to an end with a sentence where a property does not hold.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::fuzz {

struct Harness {
  const char* name;  ///< of its folders below corpus/ and found/
  void (*try_input)(std::string_view);
};

/// Those that are linked into this program.
inline std::vector<Harness>& harnesses() {
  static std::vector<Harness> all;
  return all;
}

struct Registered {
  explicit Registered(Harness harness) { harnesses().push_back(harness); }
};

/// Ends the program as a sanitizer does, so that a fuzzer keeps the input.
inline void check(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "property does not hold: %s\n", property);
  std::abort();
}

/// Takes what it gives from the front of an input: which of several readers, in which pieces.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}
  std::size_t number() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  /// Up to the next separator, a byte that no text has.
  std::string_view part() {
    const std::size_t end = std::min(rest_.find('\0'), rest_.size());
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return text;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace hpcbatch::fuzz

/// HARNESS(yaml, bytes) { ... }
#define HPCBATCH_HARNESS(name, bytes)                              \
  namespace hpcbatch::fuzz {                                       \
  static void try_##name(std::string_view bytes);                  \
  static const Registered registered_##name{{#name, &try_##name}}; \
  }                                                                \
  static void hpcbatch::fuzz::try_##name(std::string_view bytes)
