// How often each kind of fault and each transition was exercised.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hpcbatch::clockwork {

class Tally {
 public:
  /// With everything that a campaign is to exercise, at zero.
  Tally();
  /// What is not one of those is counted as well.
  void count(std::string_view what, std::uint64_t times = 1);
  void add(const Tally& other);
  const std::map<std::string, std::uint64_t, std::less<>>& counts() const { return counts_; }

 private:
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace hpcbatch::clockwork
