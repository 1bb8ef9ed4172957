// What runs and what ran: one answer for whoever draws it, by what has changed.
#include "api/answers/to_json.hpp"
#include "api/api.hpp"
#include "api/read/json_values.hpp"
#include "api/routes.hpp"
#include "failure/failure.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kUsualRuns = 2'000, kMostRuns = 20'000;

/// How far somebody has heard: of ends by the store, of what runs by this engine.
struct Heard {
  std::uint64_t ends{0}, running{0};
};

Heard heard_in(const HttpRequest& request) {
  const std::string text = text_in(request, "after");
  if (text.empty()) return {};
  const std::size_t middle = std::min(text.find('-'), text.size());
  const auto ends = number_in<std::uint64_t>(text.substr(0, middle));
  const auto running =
      number_in<std::uint64_t>(std::string_view(text).substr(std::min(middle + 1, text.size())));
  if (!ends || !running)
    throw BadRequest(fmt::format("'after={}' is no cursor of an earlier answer", text));
  return {*ends, *running};
}

/// Neighbours mostly belong to one array.
class TitlesOfArrays {
 public:
  explicit TitlesOfArrays(store::Store& store) : store_(store) {}
  void put(json::object& line, ArrayId array) {
    if (!of_ || *of_ != array) titles_ = store_.history().titles(array);
    of_ = array;
    line["array"] = std::to_string(array.value);
    if (!titles_) return;
    if (!titles_->name.empty()) line["name"] = titles_->name;
    if (!titles_->tool.empty()) line["tool"] = titles_->tool;
  }

 private:
  store::Store& store_;
  std::optional<ArrayId> of_;
  std::optional<store::Titles> titles_;
};

json::object line_of_run(TaskId task, std::string pilot, std::uint32_t attempt, TaskState state,
                         Time started) {
  return {{"id", to_string(task)},
          {"pilot", std::move(pilot)},
          {"attempt", attempt},
          {"state", std::string(to_string(state))},
          {"started_at", seconds(started)}};
}

json::array ended_json(const std::vector<store::ResultRow>& newest_first, TitlesOfArrays& titles) {
  json::array ended;
  for (auto row = newest_first.rbegin(); row != newest_first.rend(); ++row) {
    json::object line = line_of_run({row->array, row->indices.first}, row->pilot, row->attempt,
                                    state_after(row->outcome.failure), *row->outcome.started);
    line["ended_at"] = seconds(row->outcome.ended);
    titles.put(line, row->array);
    ended.push_back(std::move(line));
  }
  return ended;
}

json::array running_json(const std::vector<RunningTask>& running, TitlesOfArrays& titles) {
  json::array lines;
  for (const RunningTask& one : running) {
    json::object line =
        line_of_run(one.task, to_string(one.pilot), one.attempt, TaskState::Running, one.started);
    titles.put(line, one.task.array);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

Runs::Runs(Runtime& runtime)
    : runtime_(runtime),
      running_(
          static_cast<std::uint64_t>(std::max<std::int64_t>(1, to_microseconds(runtime.now())))) {}

void Runs::add_to(Routes& routes) {
  routes.add("GET", "runs",
             [this](HttpRequest& request, const ReplyPtr& reply) { list(request, reply); });
}

void Runs::list(const HttpRequest& request, const ReplyPtr& reply) {
  const Heard heard = heard_in(request);
  const std::uint32_t limit =
      std::clamp<std::uint32_t>(number_in(request, "limit", kUsualRuns), 1, kMostRuns);
  running_.look(runtime_.engine().pilots().leases());
  runtime_.look(
      [heard, limit, change = running_.since(heard.running),
       version = running_.version()](store::Store& store) {
        const store::ChangeFeed feed = store.history().runs(heard.ends, limit);
        TitlesOfArrays titles(store);
        json::array gone;
        for (const TaskId task : change.gone) gone.push_back(json::string(to_string(task)));
        return json::object{{"cursor", fmt::format("{}-{}", feed.cursor, version)},
                            {"whole", change.is_whole},
                            {"ended", ended_json(feed.rows, titles)},
                            {"running", running_json(change.running, titles)},
                            {"gone", std::move(gone)}};
      },
      [reply](const json::object& answer) { reply->answer(200, answer); });
}

}  // namespace hpcbatch
