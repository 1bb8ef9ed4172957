#include "api/reports.hpp"

#include "api/answers/report_json.hpp"
#include "api/answers/to_json.hpp"
#include "api/query.hpp"
#include "records/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::days kUsually{7};
constexpr std::size_t kMostAdvice = 5;

/// Of which days, and how it is put together.
struct Asked {
  std::int32_t first{0}, last{0};
  records::By by{records::By::Kind};
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
  asked.first = records::day_of(time_in(request, "since", now - kUsually));
  asked.last = records::day_of(time_in(request, "until", now));
  asked.by = word_in<records::By>(request, "by", records::parse_by,
                                  "reports are by kind, site, client, day")
                 .value_or(records::By::Kind);
  return asked;
}

struct Found {
  records::UsageRows rows;
  std::vector<std::pair<std::string, records::Profile>> profiles;
  std::vector<store::AllocationSums> allocations;
};

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

json::object report_json(const Asked& asked, const Found& found) {
  json::array rows, advice;
  const auto kinds = records::kinds_of(found.rows, found.profiles);
  for (const auto& [key, usage] : records::put_together(found.rows, asked.by)) {
    json::object row{{"key", valid_utf8(key)}};
    const json::object sums = to_json(usage);
    row.insert(sums.begin(), sums.end());
    const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                   [&, &name = key](const auto& one) { return one.kind == name; });
    if (asked.by == records::By::Kind && kind != kinds.end()) row["took"] = to_json(kind->profile);
    rows.push_back(std::move(row));
  }
  const double days = asked.last - asked.first + 1;
  for (const records::Advice& one : records::advice_for(kinds, kMostAdvice))
    advice.push_back(to_json(one, days));
  return {
      {"since", records::show_day(asked.first)},          {"until", records::show_day(asked.last)},
      {"total", to_json(records::sum_of(found.rows))},    {"rows", std::move(rows)},
      {"batch_jobs", batch_jobs_json(found.allocations)}, {"advice", std::move(advice)}};
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
  runtime_.learning().catch_up([this, asked, now, reply] {
    runtime_.look(
        [asked, now](store::Store& store) {
          const Time begin{std::chrono::days{asked.first}};
          const Time end{std::chrono::days{asked.last + 1}};
          return Found{store.records().usage(asked.first, asked.last),
                       store.records().profiles(now),
                       store.history().allocation_sums(begin, std::min(end, now))};
        },
        [asked, reply](const Found& found) { reply->answer(200, report_json(asked, found)); });
  });
}

}  // namespace hpcbatch
