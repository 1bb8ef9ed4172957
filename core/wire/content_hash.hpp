// What bytes are told apart by: their BLAKE2b-256, taken piece by piece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace hpcbatch::wire {

class ContentHash {
 public:
  ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void add(std::string_view bytes);
  /// 64 hexadecimal digits; nothing may be added afterwards.
  std::string digits();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hpcbatch::wire
