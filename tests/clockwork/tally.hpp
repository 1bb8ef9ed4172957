// How often each kind of fault and each transition was exercised.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hpcbatch::clockwork {

class Tally {
 public:
  /// With everything that a campaign is to exercise, at zero.
  Tally();
  /// What is not one of those is counted as well.
  void count(std::string_view what, std::uint64_t times = 1);
  void add(const Tally& other);
  /// By name.
  std::map<std::string, std::uint64_t> counts() const { return {counts_.begin(), counts_.end()}; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace hpcbatch::clockwork
