// G5: a pilot with nothing to do ends; failing pilots are asked for ever more slowly.
#include "history/promise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace hpcbatch::history {
namespace {

// After the second failure of a shape in a row it is left alone for so long at the least, twice
// that after the third.
constexpr std::int64_t kFirstPause = 500'000;
constexpr std::int64_t kLongestPause = 300'000'000;
// A pilot waits for the engine's answer, which may bring more work, and then as long as that took: a
// minute each at the most.
constexpr std::int64_t kAnswersUs = 120'000'000;

class Waste : public Promise {
 public:
  Waste(const Options& options, std::vector<Breach>& breaches) : Promise("G5", options, breaches) {}

  void see(std::size_t at, const Record& record) override {
    if (const std::string process = pilot_process(record); !process.empty()) {
      of_pilot(at, record, process);
    } else if (record.what == "pilot-stopped" || record.what == "pilot-continued") {
      Pilot& pilot = pilots_[std::string(fact_of(record, "process"))];
      look_at_idle(at, record, std::string(fact_of(record, "process")), pilot);
      pilot.stands_still = record.what == "pilot-stopped";
    } else if (record.what == "engine-started") {
      for (auto& [name, shape] : shapes_) shape.failures = 0;  // a start may try once
    } else if (record.what == "allocation-decided") {
      // What fails until the intent is on disk nobody could know of.
      decided_.insert(std::string(fact_of(record, "allocation")));
      asked(at, record);
    } else if (record.what == "allocation-asked") {
      if (decided_.erase(std::string(fact_of(record, "allocation"))) == 0) asked(at, record);
    } else if (record.what == "pilot-registered") {
      const auto allocation =
          allocations_.find(allocation_of(std::string(fact_of(record, "pilot"))));
      if (allocation != allocations_.end()) {
        allocation->second.worked = true;
        shapes_[allocation->second.shape].failures = 0;
      }
    } else if (record.what == "allocation-ended") {
      ended(at, record);
    }
  }

 private:
  struct Pilot {
    std::int64_t idle_us{0};
    std::int64_t running{0};
    std::int64_t staged{0};     ///< outputs that wait to be published
    std::uint64_t starting{0};  ///< services that take long
    bool linked{false};
    bool stands_still{false};
    std::int64_t stays_until_us{0};  ///< the engine wants it there
    std::int64_t since_us{0};        ///< of having nothing to do, or of its link
    std::size_t since{0};
  };
  struct Allocation {
    std::string shape;
    std::int64_t asked_us{0};
    bool worked{false};
  };
  struct Shape {
    int failures{0};
    std::int64_t failed_us{0};
    std::size_t failed{0};
  };

  void of_pilot(std::size_t at, const Record& record, const std::string& process) {
    Pilot& pilot = pilots_[process];
    if (record.what == "pilot-started")
      pilot.idle_us = static_cast<std::int64_t>(number_of(record, "idle_us"));
    look_at_idle(at, record, process, pilot);
    if (record.what == "attempt-started" || record.what == "room-held") ++pilot.running;
    if (record.what == "room-freed") --pilot.running;
    if (record.what == "attempt-ended") {
      --pilot.running;
      if (fact_of(record, "staged") == "1") ++pilot.staged;
    }
    if (record.what == "published" || record.what == "discarded") --pilot.staged;
    if (record.what == "services-starting") pilot.starting = number_of(record, "count");
    if (record.what == "stays") {
      pilot.stays_until_us =
          record.time_us + static_cast<std::int64_t>(number_of(record, "ms")) * 1000;
    }
    if (record.what == "linked") {
      pilot.linked = true;
      pilot.stays_until_us = 0;
    }
    if (record.what == "link-lost" || record.what == "pilot-ended") pilot.linked = false;
  }

  void look_at_idle(std::size_t at, const Record& record, const std::string& process,
                    Pilot& pilot) {
    const bool idle = pilot.linked && pilot.running == 0 && pilot.staged <= 0 &&
                      !pilot.stands_still && pilot.starting == 0;
    const std::int64_t idle_us = record.time_us - std::max(pilot.since_us, pilot.stays_until_us);
    if (idle && pilot.idle_us > 0 &&
        idle_us > std::max(pilot.idle_us, kAnswersUs) + options_.slack_us) {
      broken(fmt::format("pilot {} had nothing to do for {} s and stayed", process,
                         idle_us / 1'000'000),
             {pilot.since, at});
    }
    pilot.since_us = record.time_us;
    pilot.since = at;
  }

  void asked(std::size_t at, const Record& record) {
    const std::string name =
        fmt::format("{} of {}", fact_of(record, "shape"), fact_of(record, "site"));
    Shape& shape = shapes_[name];
    if (shape.failures >= 2) {
      const std::int64_t pause =
          std::min(kLongestPause, kFirstPause << std::min(shape.failures - 2, 20));
      if (record.time_us - shape.failed_us < pause) {
        broken(fmt::format("{} is asked for again {} ms after it failed {} times in a row", name,
                           (record.time_us - shape.failed_us) / 1000, shape.failures),
               {shape.failed, at});
      }
    }
    allocations_.try_emplace(std::string(fact_of(record, "allocation")),
                             Allocation{name, record.time_us, false});
  }

  void ended(std::size_t at, const Record& record) {
    const auto found = allocations_.find(std::string(fact_of(record, "allocation")));
    if (found == allocations_.end()) return;
    Shape& shape = shapes_[found->second.shape];
    // It makes room for the next one, which need not wait.
    if (found->second.worked) {
      shape.failures = 0;
      return;
    }
    // Those that were asked for before the failure was known are part of it.
    if (shape.failures != 0 && found->second.asked_us <= shape.failed_us) return;
    if (fact_of(record, "cause") == "unneeded") return;
    ++shape.failures;
    shape.failed_us = record.time_us;
    shape.failed = at;
  }

  std::map<std::string, Pilot> pilots_;
  std::map<std::string, Allocation> allocations_;
  std::set<std::string> decided_;  ///< allocations, and not asked for yet
  std::map<std::string, Shape> shapes_;
};

}  // namespace

std::unique_ptr<Promise> waste(const Options& options, std::vector<Breach>& breaches) {
  return std::make_unique<Waste>(options, breaches);
}

}  // namespace hpcbatch::history
