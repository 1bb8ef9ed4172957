// One array of which something has not ended.  There may be a million of them.
#pragma once

#include "engine/state/ready_queue.hpp"
#include "engine/state/staging_times.hpp"
#include "engine/state/task_partition.hpp"
#include "engine/state/terms.hpp"
#include "model/ids.hpp"
#include "model/task.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
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
    IndexSet failed;                              ///< where it is given up after so many
    std::optional<Duration> unread_for;  ///< it was cancelled, because who waited for it is gone
    IndexSet cut;  ///< tasks that a pilot's end has cut, or that keep away from a node
    std::map<std::string, IndexSet> files_at;       ///< by site: tasks whose files were staged in
    std::map<std::string, IndexSet> files_staging;  ///< or are being staged in
    std::map<std::string, StagingTimes> staging_times;  ///< by site
    struct Pause {
      Time until{};
      std::uint32_t failures{0};
      std::string why;
    };
    std::map<std::string, Pause> pauses;  ///< by site: files could not be staged in there
    /// Of tasks that need more time than they first had, or whose files are somewhere.
    std::vector<ClassId> other_classes;
  };

  ArrayId id;
  std::shared_ptr<const Terms> terms;
  ClientId client{};
  std::uint32_t unspread{0};  ///< ends that what waits for it has not heard of
  TaskPartition tasks;
  std::unique_ptr<Rare> rare{};

  /// Of tasks that no pilot's end has cut, and whose files were not staged in anywhere.
  QueuePlace place() const { return {terms->in_class, terms->priority, client, id}; }
  /// All its places in the queue; most arrays have one.
  std::vector<QueuePlace> places() const {
    std::vector<QueuePlace> all{place()};
    for (const ClassId other : other_classes()) all.push_back({other, terms->priority, client, id});
    return all;
  }
  const IndexSet& cut() const { return seldom().cut; }
  bool needs_files() const { return !terms->needs.staged_to.empty(); }
  const std::map<std::string, IndexSet>& files_at() const { return seldom().files_at; }
  const std::map<std::string, IndexSet>& files_staging() const { return seldom().files_staging; }
  const std::vector<ClassId>& other_classes() const { return seldom().other_classes; }
  const std::vector<Dependency>& after() const { return seldom().after; }
  const std::multimap<ArrayId, OpenDependency>& open() const { return seldom().open; }
  /// How many have failed and may; nothing where that is not too many.
  std::optional<std::string> why_given_up() const;
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
