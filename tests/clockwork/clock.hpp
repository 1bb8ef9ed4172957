// The one clock of a simulated world: what is to happen, in order of time, and of asking where
// times are equal.
#pragma once

#include "model/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace hpcbatch::clockwork {

class Clock {
 public:
  static constexpr Time kBegin = from_microseconds(1'700'000'000'000'000);

  Time now() const { return now_; }
  void at(Time time, std::function<void()> happens) {
    coming_.push_back({std::max(time, now_), asked_++, std::move(happens)});
    std::push_heap(coming_.begin(), coming_.end());
  }
  void after(Duration wait, std::function<void()> happens) { at(now_ + wait, std::move(happens)); }
  bool empty() const { return coming_.empty(); }
  Time next() const { return coming_.front().time; }
  void step() {
    std::pop_heap(coming_.begin(), coming_.end());
    const Coming next = std::move(coming_.back());
    coming_.pop_back();
    now_ = next.time;
    next.happens();
  }

 private:
  struct Coming {
    Time time;
    std::uint64_t asked;
    std::function<void()> happens;
    friend bool operator<(const Coming& a, const Coming& b) {
      return a.time != b.time ? a.time > b.time : a.asked > b.asked;
    }
  };
  Time now_{kBegin};
  std::uint64_t asked_{0};
  std::vector<Coming> coming_;
};

}  // namespace hpcbatch::clockwork
