// A store with nothing in it, and what is saved there.
#pragma once

#include "store/store.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// On the disk of $HPCBATCH_BENCH_DIR, else of /tmp; gone with this object.
class KeptStore {
 public:
  KeptStore() {
    const char* place = std::getenv("HPCBATCH_BENCH_DIR");
    folder_ = std::string(place ? place : "/tmp") + "/hbb-store-XXXXXX";
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
    auto opened = store::Store::open(folder_ + "/store.db");
    if (!opened) std::abort();
    store_ = std::move(*opened);
    store_->begin();
  }
  ~KeptStore() {
    store_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  void commit(const std::vector<store::Write>& writes, bool durable) {
    if (!store_->commit(writes, durable)) std::abort();
  }

  store::Store& store() { return *store_; }
  /// Of the database, when its log has been moved into it.
  std::uint64_t bytes() {
    store_.reset();
    const auto size = std::filesystem::file_size(folder_ + "/store.db");
    auto opened = store::Store::open(folder_ + "/store.db");
    if (!opened) std::abort();
    store_ = std::move(*opened);
    begin_learning();
    return size;
  }
  void begin_learning() {
    store_->records().begin_learning(
        [](const store::ArrayRow& array) { return "kind " + std::to_string(array.id.value); },
        [] { return from_microseconds(1'700'000'000'000'000) + std::chrono::hours(1); });
  }

 private:
  std::string folder_;
  std::unique_ptr<store::Store> store_;
};

/// A recipe of 300 bytes for so many tasks.
inline store::Write array_of(std::uint64_t id, std::uint32_t count) {
  NewArray array;
  array.indices = IndexRange{1, count};
  array.needs.amounts.set(kCpus, Amount::of(1));
  store::Recipe recipe;
  recipe.bytes = std::string(300, 'x');
  return {SaveArrays{RequestId{1}, "bench", "", 0, Time{}, ArrayId{id}, {array}}, {recipe}};
}

/// `count` tasks of array 1 from index `first` on: leased in one commit, ended in the next.
struct LeasesAndResults {
  LeasesAndResults(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t index = first; index < first + count; ++index) {
      const AttemptId attempt{{ArrayId{1}, index}, 1, (std::uint64_t{1} << 40) + index};
      leases.attempts.push_back(attempt);
      Outcome outcome;
      outcome.started = outcome.ended = from_microseconds(1'700'000'000'000'000 + index);
      results.push_back({SaveResult{attempt, leases.pilot, "node1", outcome}, {}});
    }
  }
  void commit(KeptStore& kept) {
    kept.commit({{std::move(leases), {}}}, false);
    kept.commit(results, true);
  }
  SaveLeases leases{PilotId{AllocationId{"Hb1a2b3c"}, 0}, {}};
  std::vector<store::Write> results;
};

}  // namespace hpcbatch
