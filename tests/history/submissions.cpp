// G1: what was accepted is never lost.  G4: it ends, or it is said why it waits.
#include "history/promise.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace hpcbatch::history {
namespace {

class Submissions : public Promise {
 public:
  Submissions(const Options& options, std::vector<Breach>& breaches)
      : Promise("G1", options, breaches), silence_("G4", options, breaches) {}

  void see(std::size_t at, const Record& record) override {
    if (record.by == "outside" && record.what == "answered") return answered(at, record);
    if (!is_by_engine(record)) return;
    if (record.what == "accepted" || record.what == "revived") {
      Array& array = arrays_[array_of(record)];
      array.open.add(indices_of(record));
      array.ended.remove(indices_of(record));
      array.accepted = at;
      array.never_again.remove(indices_of(record));
    } else if (record.what == "reviving") {
      arrays_[array_of(record)].reviving.add(indices_of(record));
    } else if (record.what == "result") {
      arrays_[task_of(record).array].end(IndexRange{task_of(record).index, task_of(record).index});
    } else if (record.what == "never-ran") {
      arrays_[array_of(record)].end(indices_of(record));
    } else if (record.what == "restored-open") {
      restored_[array_of(record)] = indices_of(record);
    } else if (record.what == "restored") {
      restored(at, ArrayId{number_of(record, "next_array")});
    } else if (record.what == "waits") {
      waits_[array_of(record)].add(indices_of(record));
      if (fact_of(record, "reason").empty()) silence_.say("it is not said why tasks wait", {at});
    } else if (record.what == "engine-started") {
      waits_.clear();
      restored_.clear();
    } else if (record.what == "engine-ended") {
      look(at);
    }
  }

  void end() override {
    if (options_.ended) look(std::nullopt);
  }

 private:
  struct Silence : Promise {
    using Promise::Promise;
    void see(std::size_t, const Record&) override {}
    void say(std::string text, std::vector<std::size_t> records) {
      broken(std::move(text), std::move(records));
    }
  };
  struct Array {
    IndexSet open, ended;
    IndexSet never_again;  ///< said to be lost
    IndexSet reviving;     ///< may be revived: an engine that was killed did not come to say so
    std::size_t accepted{0};
    void end(const IndexSet& indices) {
      open.remove(indices);
      ended.add(indices);
    }
  };

  /// A client was told that they are accepted, whatever the engine recorded of it: it may have died
  /// before it did, and the tasks may have ended since.
  void answered(std::size_t at, const Record& record) {
    const auto [array, is_new] = arrays_.try_emplace(array_of(record));
    if (is_new) array->second.accepted = at;
  }

  /// What an engine finds in its store when it starts.  An engine that was killed may have had no
  /// time to record a result that was on disk: what is not open then has one.
  void restored(std::size_t at, ArrayId next) {
    for (auto& [id, array] : arrays_) {
      if (!(id < next)) {
        broken(
            fmt::format("array {} was accepted, and the next start of the engine does not know it",
                        id.value),
            {array.accepted, at});
      }
      IndexSet again = restored_[id].intersection(array.ended);
      again.remove(array.reviving);
      if (!again.empty()) {
        broken(fmt::format("results of {} of array {} are gone after the engine's next start: {}",
                           again.size(), id.value, to_string(again)),
               {array.accepted, at});
      }
      array.open = array.open.intersection(restored_[id]);
      const IndexSet revived = restored_[id].intersection(array.reviving);
      array.open.add(revived);
      array.ended.remove(revived);
    }
  }

  void look(std::optional<std::size_t> at) {
    for (auto& [id, array] : arrays_) {
      IndexSet lost = array.open;
      lost.remove(waits_[id]);
      lost.remove(array.never_again);
      if (lost.empty()) continue;
      std::vector<std::size_t> records{array.accepted};
      if (at) records.push_back(*at);
      broken(fmt::format("{} of array {} have neither a result nor a reason to wait: {}",
                         lost.size(), id.value, to_string(lost)),
             std::move(records));
      array.never_again.add(lost);
    }
  }

  std::map<ArrayId, Array> arrays_;
  std::map<ArrayId, IndexSet> waits_, restored_;  ///< since the engine's last start
  Silence silence_;
};

}  // namespace

std::unique_ptr<Promise> submissions(const Options& options, std::vector<Breach>& breaches) {
  return std::make_unique<Submissions>(options, breaches);
}

}  // namespace hpcbatch::history
