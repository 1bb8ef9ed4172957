#include "foresight/look_ahead.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::foresight {

bool is_time_to_ask(const std::vector<Seconds>& starts, Seconds supply_ends,
                    const AskingCosts& costs) {
  if (starts.empty() || quantile(starts, costs.quantile()) < supply_ends) return false;
  Seconds idle = 0;
  for (const Seconds start : starts) idle += std::max<Seconds>(0, supply_ends - start);
  return idle <= costs.most_idle * static_cast<Seconds>(starts.size());
}

namespace {

constexpr double kCoarsens = 1.0 / 16;

}  // namespace

Seconds quantile(const std::vector<Seconds>& sorted, double q) {
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return static_cast<Seconds>(std::llround(static_cast<double>(sorted[below]) * (1 - part) +
                                           static_cast<double>(sorted[above]) * part));
}

DrawnStarts draw_starts(const QueueView& view, ClusterModel model, const RunTimes* times,
                        const Job& job, const std::vector<std::size_t>& asked, const Draws& draws) {
  DrawnStarts starts;
  starts.waiting.resize(asked.size());
  model.nodes = {{view.now, view.nodes}};
  model.nodes.insert(model.nodes.end(), view.later.begin(), view.later.end());
  model.coarsens = kCoarsens;
  std::vector<Job> waiting = view.waiting;
  const Seconds last = view.now + draws.horizon;
  for (std::size_t i = 0; i < draws.count; ++i) {
    RunTimeDraw run_time(times, draws.alike, draws.seed + static_cast<std::uint32_t>(i) * 7919U);
    Cluster cluster(model, view.now);
    for (const auto& [running, started] : view.running) {
      Job drawn = running;
      drawn.runs = run_time(running, std::max<Seconds>(view.now - started, 1));
      cluster.run_since(drawn, started);
    }
    for (std::size_t k = 0; k < waiting.size(); ++k) {
      waiting[k].runs = run_time(waiting[k], 0);
      waiting[k].after.reset();
    }
    const auto first = static_cast<Cluster::Id>(cluster.count());
    cluster.queue_all(waiting);
    starts.next.push_back(cluster.play_until_started(cluster.submit(job), last).value_or(last));
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const Cluster::Id id = first + static_cast<Cluster::Id>(asked[k]);
      const auto started = cluster.started(id);
      starts.waiting[k].push_back(started ? *started
                                          : cluster.play_until_started(id, last).value_or(last));
    }
    if (!times) break;
  }
  std::sort(starts.next.begin(), starts.next.end());
  for (auto& each : starts.waiting) std::sort(each.begin(), each.end());
  return starts;
}

}  // namespace hpcbatch::foresight
