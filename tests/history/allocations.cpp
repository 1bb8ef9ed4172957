// G6: no allocation is asked for twice, and never more than the site's limits are there.
#include "history/promise.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace hpcbatch::history {
namespace {

class Allocations : public Promise {
 public:
  Allocations(const Options& options, std::vector<Breach>& breaches)
      : Promise("G6", options, breaches) {}

  void see(std::size_t at, const Record& record) override {
    if (is_by_engine(record)) {
      of_engine(at, record);
    } else if (record.by == "outside") {
      of_batch_system(at, record);
    }
  }

 private:
  struct Site {
    std::uint64_t max_queued{0}, max_running{0};
    std::set<std::string> queued, running;  ///< batch jobs by number
  };

  void of_engine(std::size_t at, const Record& record) {
    const std::string name(fact_of(record, "allocation"));
    if (record.what == "site") {
      Site& site = sites_[std::string(fact_of(record, "site"))];
      site.max_queued = number_of(record, "max_queued");
      site.max_running = number_of(record, "max_running");
    } else if (record.what == "allocation-asked") {
      // Only where it was looked up and is not there may the same name be asked for again.
      if (const auto before = asked_.find(name); before != asked_.end()) {
        broken(fmt::format("allocation {} is asked for twice", name), {before->second, at});
      }
      asked_[name] = at;
    } else if (record.what == "allocation-absent") {
      asked_.erase(name);
    }
  }

  void of_batch_system(std::size_t at, const Record& record) {
    const std::string site_name(fact_of(record, "site"));
    const std::string number(fact_of(record, "number"));
    const std::string name(fact_of(record, "name"));
    Site& site = sites_[site_name];
    if (record.what == "job-created") {
      if (const auto other = living_.find(name); other != living_.end()) {
        broken(fmt::format("two batch jobs are called {} at the same time", name),
               {other->second, at});
      }
      living_[name] = at;
      site.queued.insert(number);
    } else if (record.what == "job-running") {
      site.queued.erase(number);
      site.running.insert(number);
    } else if (record.what == "job-ended") {
      site.queued.erase(number);
      site.running.erase(number);
      living_.erase(name);
    }
    if (site.max_running == 0) return;
    if (site.queued.size() > site.max_queued) {
      broken(fmt::format("{} batch jobs wait at {}, where {} may", site.queued.size(), site_name,
                         site.max_queued),
             {at});
    }
    if (site.queued.size() + site.running.size() > site.max_running) {
      broken(fmt::format("{} batch jobs are at {}, where {} may be",
                         site.queued.size() + site.running.size(), site_name, site.max_running),
             {at});
    }
  }

  std::map<std::string, std::size_t> asked_;
  std::map<std::string, std::size_t> living_;
  std::map<std::string, Site> sites_;
};

}  // namespace

std::unique_ptr<Promise> allocations(const Options& options, std::vector<Breach>& breaches) {
  return std::make_unique<Allocations>(options, breaches);
}

}  // namespace hpcbatch::history
