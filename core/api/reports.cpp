#include "api/api.hpp"

#include "api/answers/to_json.hpp"
#include "api/routes.hpp"
#include "engine/sites/site_table.hpp"
#include "model/site.hpp"
#include "records/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::days kUsually{7};
constexpr std::size_t kMostAdvice = 5;
// Hours a week, of a cpu, a gigabyte or a GPU.
constexpr double kWorthAWord = 0.001;
constexpr std::uint64_t kMostMetrics = std::uint64_t{8} << 20;  // bytes

/// Of which days, and how it is put together.
struct Asked {
  std::int32_t first{0}, last{0};
  records::By by{records::By::Kind};
  bool metrics{false};  ///< what tasks said of themselves too
};

Time time_in(const HttpRequest& request, const char* key, Time otherwise) {
  const double since_1970 = seconds_in(request, key, -1);
  // Farther away there is no day.
  if (since_1970 < 0) return otherwise;
  return Time{} + std::chrono::duration_cast<Duration>(
                      std::chrono::duration<double>(std::min(since_1970, 1e11)));
}

Asked read_asked(const HttpRequest& request, Time now) {
  Asked asked;
  // Of other days nothing is kept.
  const std::int32_t today = records::day_of(now);
  const auto kept = [today](Time time) {
    return std::clamp(records::day_of(time), today - store::RecordRows::kDaysKept, today);
  };
  asked.first = kept(time_in(request, "since", now - kUsually));
  asked.last = kept(time_in(request, "until", now));
  asked.by = word_in<records::By>(request, "by", records::parse_by,
                                  "reports are by kind, site, client, day")
                 .value_or(records::By::Kind);
  asked.metrics = text_in(request, "metrics") == "1";
  return asked;
}

json::array batch_jobs_json(const std::vector<store::AllocationSums>& all) {
  json::array jobs;
  for (const store::AllocationSums& one : all) {
    jobs.push_back({{"site", one.site},
                    {"jobs", one.jobs},
                    {"wait_h", seconds(one.waited) / 3600},
                    {"run_h", seconds(one.ran) / 3600}});
  }
  return jobs;
}

/// What one allocation of each shape has for tasks; of those that were made for choices, what their
/// shape has.
using ShapesCapacity = std::map<std::pair<std::string, std::string>, Resources>;

ShapesCapacity capacity_of_shapes(const SiteTable& table) {
  ShapesCapacity capacity;
  for (const SiteState& site : table.sites())
    for (const ShapeState& state : site.shapes)
      for (std::uint32_t node = 0; node < state.shape.nodes; ++node)
        capacity[{site.site.name, state.shape.name}].add(usable(state.shape));
  return capacity;
}

/// Hours of cpus and of GPUs by kind that pilots had for tasks; nothing where there are some of
/// shapes that are no longer known.
void put_held_hours(const std::vector<store::ShapeHeld>& held, const ShapesCapacity& capacity,
                    json::object& report) {
  double cpus = 0;
  std::map<std::string_view, double> gpus;
  for (const store::ShapeHeld& one : held) {
    auto at = capacity.find({one.site, one.shape});
    if (at == capacity.end())
      at = capacity.find({one.site, std::string(configured_name(one.shape))});
    if (at == capacity.end()) return;
    const double hours = seconds(one.ran) / 3600;
    for (const auto& [name, amount] : at->second.entries()) {
      if (name == kCpus) cpus += hours * amount.value();
      if (name.starts_with(kGpuPrefix))
        gpus[std::string_view(name).substr(kGpuPrefix.size())] += hours * amount.value();
    }
  }
  report["held_cpu_h"] = cpus;
  if (gpus.empty()) return;
  json::object by_kind;
  for (const auto& [kind, hours] : gpus) by_kind[kind] = hours;
  report["held_gpu_h"] = std::move(by_kind);
}

void put_all_metrics(json::object& report, store::Store& store, Time begin, Time end) {
  const store::History::Metrics found = store.history().metrics(begin, end, kMostMetrics);
  json::array all;
  for (const auto& [task, text] : found.tasks) {
    json::object one{{"id", to_string(task)}};
    put_metrics(one, text);
    all.push_back(std::move(one));
  }
  report["metrics"] = std::move(all);
  if (found.is_cut) report["metrics_cut"] = true;
}

json::object read_report(store::Store& store, const Asked& asked, const ShapesCapacity& capacity,
                         Time now) {
  const records::UsageRows usage = store.records().usage(asked.first, asked.last);
  const auto kinds = records::kinds_of(usage, store.records().profiles());
  std::map<std::string_view, const records::Profile*> took;
  if (asked.by == records::By::Kind) {
    for (const records::KindUse& kind : kinds) took[kind.kind] = &kind.profile;
  }
  json::array rows, advice;
  for (const auto& [key, sums] : records::put_together(usage, asked.by)) {
    json::object row = to_json(sums);
    row["key"] = key;
    if (const auto at = took.find(key); at != took.end()) row["took"] = to_json(*at->second);
    rows.push_back(std::move(row));
  }
  const double days = asked.last - asked.first + 1;
  for (const records::Advice& one : records::advice_for(kinds, kMostAdvice)) {
    json::object told = to_json(one, days);
    if (told.at("saves_a_week_h").to_number<double>() >= kWorthAWord)
      advice.push_back(std::move(told));
  }
  const Time begin{std::chrono::days{asked.first}}, end{std::chrono::days{asked.last + 1}};
  json::object report{
      {"since", records::show_day(asked.first)},
      {"until", records::show_day(asked.last)},
      {"total", to_json(records::sum_of(usage))},
      {"rows", std::move(rows)},
      {"batch_jobs", batch_jobs_json(store.history().allocation_sums(begin, std::min(end, now)))},
      {"advice", std::move(advice)}};
  put_held_hours(store.history().held(begin, std::min(end, now)), capacity, report);
  if (asked.metrics) put_all_metrics(report, store, begin, end);
  return report;
}

}  // namespace

void Reports::add_to(Routes& routes) {
  routes.add("GET", "report",
             [this](HttpRequest& request, const ReplyPtr& reply) { report(request, reply); });
}

void Reports::report(const HttpRequest& request, const ReplyPtr& reply) {
  const Time now = runtime_.now();
  const Asked asked = read_asked(request, now);
  if (asked.first > asked.last) throw BadRequest("'until' is before 'since'");
  const auto look = [this, asked, now, reply] {
    runtime_.look([asked, now, capacity = capacity_of_shapes(runtime_.engine().sites())](
                      store::Store& store) { return read_report(store, asked, capacity, now); },
                  [reply](const json::object& report) { reply->answer(200, report); });
  };
  // One that cannot be written is looked at as it is.
  if (runtime_.store_trouble()) return look();
  runtime_.learning().catch_up(look);
}

}  // namespace hpcbatch
