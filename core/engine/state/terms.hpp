// What many arrays have in common; kept once for all of them.
#pragma once

#include "engine/state/ready_queue.hpp"
#include "model/task.hpp"

#include <cstdint>
#include <memory>
#include <set>

namespace hpcbatch {

/// How an array is to be run, as its user said.
struct Terms {
  Needs needs;
  std::int32_t priority{0};
  std::uint32_t retries{0};
  std::uint32_t max_running{0};  ///< 0: no bound
  std::uint32_t give_up_at{0};   ///< failures; 0: never
  bool gives_up_running{false};
  bool streams_input{false};
  std::optional<TaskId> within{};  ///< the task whose command submitted it
  ClassId in_class{};              ///< of the needs
};

class TermsPool {
 public:
  explicit TermsPool(ReadyQueue& queue) : queue_(queue) {}

  std::shared_ptr<const Terms> of(const NewArray& array);
  /// Gives terms back; the last to do so forgets them.
  void release(std::shared_ptr<const Terms> terms);
  std::size_t size() const { return pool_.size(); }
  /// Each set of terms that some array has.
  template <class Look>
  void each(Look look) const {
    for (const auto& terms : pool_) look(*terms);
  }

 private:
  struct Less {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const;
  };

  ReadyQueue& queue_;
  std::set<std::shared_ptr<const Terms>, Less> pool_;
};

}  // namespace hpcbatch
