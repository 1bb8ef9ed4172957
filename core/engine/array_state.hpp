// One array of which something has not ended.  There may be a million of them.
#pragma once

#include "engine/ready_queue.hpp"
#include "engine/standing.hpp"
#include "engine/terms.hpp"
#include "model/ids.hpp"
#include "model/task.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace hpcbatch {

/// How an array waits for another; `known_ok` where that itself has left memory.
struct OpenDependency {
  Dependency on;
  std::optional<IndexSet> known_ok;
};

struct ArrayState {
  /// What few arrays have.
  struct Rare {
    std::vector<Dependency> after;                ///< as submitted
    std::multimap<ArrayId, OpenDependency> open;  ///< of these, by what is waited for
    IndexSet cut;                                 ///< tasks that a pilot's end has cut
    std::vector<ClassId> other_classes;  ///< theirs: they need more time than they first had
  };

  ArrayId id;
  std::shared_ptr<const Terms> terms;
  ClientId client{};
  std::uint32_t unspread{0};  ///< ends that what waits for it has not heard of
  Standing tasks;
  std::unique_ptr<Rare> rare{};

  /// Of tasks that no pilot's end has cut.
  QueuePlace place() const { return {terms->in_class, terms->priority, client, id}; }
  const IndexSet& cut() const { return seldom().cut; }
  const std::vector<ClassId>& other_classes() const { return seldom().other_classes; }
  const std::vector<Dependency>& after() const { return seldom().after; }
  const std::multimap<ArrayId, OpenDependency>& open() const { return seldom().open; }
  Rare& make_rare() {
    if (!rare) rare = std::make_unique<Rare>();
    return *rare;
  }

 private:
  const Rare& seldom() const {
    static const Rare kNothing;
    return rare ? *rare : kNothing;
  }
};

}  // namespace hpcbatch
