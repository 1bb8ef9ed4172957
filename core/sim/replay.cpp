#include "sim/replay.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "foresight/replay/episodes.hpp"
#include "foresight/replay/fidelity.hpp"
#include "foresight/wait_history.hpp"
#include "sim/files/text_file.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace hpcbatch::sim {
namespace {

namespace json = boost::json;
using namespace foresight;

/// Run times are learned from so much of the trace before the first episode.
constexpr Seconds kLearned = 14 * kDay;
constexpr Seconds kEpisode = 5 * kDay;

ClusterModel::Backfill backfill_of(const std::string& word) {
  if (word == "easy") return ClusterModel::Backfill::Easy;
  if (word == "none") return ClusterModel::Backfill::None;
  return ClusterModel::Backfill::Conservative;
}

/// As large sites set Slurm (bf_interval and bf_resolution 600, bf_window two days), with the
/// priorities of Mirage's simulator.
ClusterModel large_site(std::int32_t nodes, const std::string& backfill) {
  ClusterModel model;
  model.nodes = {{0, nodes}};
  model.backfill = backfill_of(backfill);
  model.backfill_interval = 10 * kMinute;
  model.resolution = 10 * kMinute;
  model.window = 2 * kDay;
  model.most_tested = 3000;
  model.age_weight = 7000;
  model.size_weight = 100;
  return model;
}

json::object json_of(const Waits& waits) {
  return {{"mean_h", waits.mean},
          {"by_node_hours_h", waits.by_node_hours},
          {"median_h", waits.median},
          {"p90_h", waits.most_of_ten},
          {"at_once", waits.at_once}};
}

json::object play_whole(const SimCommand& command, Trace trace) {
  const auto over_time = nodes_over_time(trace);
  ClusterModel model = large_site(most_nodes_in_use(trace), command.backfill);
  model.nodes = over_time;
  if (command.nodes) model.nodes = {{0, static_cast<std::int32_t>(*command.nodes)}};
  // What accounting tells holds age already.
  if (trace.has_priorities) {
    model.age_weight = 10;
    model.size_weight = 0;
  }
  model.most_of_user = bound_of_users(trace);
  const std::size_t dependencies = find_dependencies(trace, over_time);
  const Fidelity found = play_trace(trace, model);
  if (found.jobs == 0 && found.never_started == 0)
    throw std::invalid_argument(
        "the trace is too short: what is submitted in the first seven days after its first start "
        "warms the cluster up and is not counted, and nothing is left; ask for more days of it");
  return {{"jobs", found.jobs},
          {"never_started", found.never_started},
          {"real", json_of(found.real)},
          {"played", json_of(found.played)},
          {"mean_error_h", found.mean_error},
          {"log_correlation", found.correlation},
          {"speed", found.took > 0 ? found.traced * kHour / found.took : 0},
          {"dependencies", dependencies},
          {"most_of_user", model.most_of_user},
          {"nodes_over_time", !command.nodes}};
}

json::object json_of(const PolicyResult& result, const PolicyResult& reactive) {
  const double before = reactive.interruption();
  return {{"policy", name_of(result.policy)},
          {"interruption_h", result.interruption()},
          {"cut", before > 0 ? 1 - result.interruption() / before : 0},
          {"overlap_h", result.overlap()},
          {"uninterrupted", result.uninterrupted()}};
}

/// Whether the look-ahead's own bound would still be trusted, and after how many pilots it would
/// not have been.
json::object json_of(const std::vector<Bounded>& bounds) {
  Coverage coverage(0.9);
  std::size_t half = 0, most = 0;
  json::value doubted_after = nullptr;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    half += bounds[i].by_half ? 1 : 0;
    most += bounds[i].by_most ? 1 : 0;
    coverage.add(bounds[i].by_most);
    if (doubted_after.is_null() && !coverage.is_right()) doubted_after = i + 1;
  }
  const auto part = [&](std::size_t count) {
    return bounds.empty() ? 0 : static_cast<double>(count) / static_cast<double>(bounds.size());
  };
  return {{"by_50", part(half)}, {"by_90", part(most)}, {"doubted_after", doubted_after}};
}

json::object play_chains(const SimCommand& command, const Trace& trace, std::int32_t nodes,
                         std::int32_t pilot_nodes, const Progress& progress) {
  Episodes how;
  how.cluster = large_site(nodes, command.backfill);
  how.model =
      large_site(static_cast<std::int32_t>(command.model_nodes.value_or(nodes)),
                 command.model_backfill.empty() ? command.backfill : command.model_backfill);
  how.knows_order = !command.unknown_order;
  how.hides_each = static_cast<std::size_t>(command.hide_each);
  how.pilot_nodes = pilot_nodes;
  how.pilot_time = command.pilot_time;
  how.every = command.every;
  how.costs = {command.waiting_cost, command.idle_cost, command.most_idle};
  how.from = command.since.value_or(trace.jobs.front().job.submitted + kLearned);
  how.until = trace.jobs.back().job.submitted - kEpisode;
  if (command.until) how.until = std::min<Seconds>(how.until, *command.until);
  if (how.until < how.from)
    throw std::invalid_argument(
        "the trace is too short for episodes of five days behind the first two weeks: say --since, "
        "or --whole to play it without pilots");
  how.policies = {Policy::Reactive,  Policy::Mean,       Policy::Quantile,
                  Policy::LookAhead, Policy::MonteCarlo, Policy::AskAhead};
  const std::string what =
      "pilots of " + std::to_string(pilot_nodes) + (pilot_nodes == 1 ? " node" : " nodes");
  const EpisodeResults found = play_episodes(trace, how, [&](std::size_t done, std::size_t all) {
    progress(what, done, all);
    return true;
  });
  json::array policies;
  for (const PolicyResult& result : found.policies)
    policies.push_back(json_of(result, found.policies.front()));
  return {{"pilot_nodes", pilot_nodes},
          {"count", found.bounds.size()},
          {"from", how.from},
          {"until", how.until},
          {"policies", std::move(policies)},
          {"bounds", json_of(found.bounds)}};
}

/// Where nodes are shared the cluster is one of cpus.
SimCommand in_units(SimCommand command, std::int32_t unit) {
  for (auto* nodes : {&command.nodes, &command.model_nodes})
    if (*nodes) **nodes *= unit;
  for (std::int64_t& size : command.pilot_nodes) size *= unit;
  return command;
}

/// Ranks are the simulator's in an episode, which begins with an empty cluster.
Trace without_priorities(Trace trace) {
  for (TracedJob& traced : trace.jobs) traced.job.priority = 0;
  return trace;
}

}  // namespace

json::object replay(const SimCommand& asked, Trace trace, const Progress& progress) {
  const std::int32_t most = most_nodes_in_use(trace);
  const std::int32_t unit = std::max(trace.cpus_of_a_node, 1);
  const SimCommand command = in_units(asked, unit);
  const auto nodes = static_cast<std::int32_t>(command.nodes.value_or(most));
  json::array notes;
  for (const std::string& note : trace.notes) notes.emplace_back(note);
  json::object all{{"jobs", trace.jobs.size()},
                   {"skipped", trace.skipped},
                   {"from", trace.jobs.front().job.submitted},
                   {"until", trace.jobs.back().job.submitted},
                   {"nodes", nodes},
                   {"most_in_use", most},
                   {"cpus_of_a_node", trace.cpus_of_a_node},
                   {"notes", std::move(notes)},
                   {"whole", play_whole(command, trace)}};
  if (command.whole) return all;
  for (const std::int64_t size : command.pilot_nodes) {
    if (size > nodes)
      throw std::invalid_argument("a pilot of " + std::to_string(size / unit) +
                                  " nodes does not fit into a cluster of " +
                                  std::to_string(nodes / unit));
  }
  const Trace played = without_priorities(std::move(trace));
  json::array episodes;
  for (const std::int64_t size : command.pilot_nodes)
    episodes.push_back(
        play_chains(command, played, nodes, static_cast<std::int32_t>(size), progress));
  all["episodes"] = std::move(episodes);
  return all;
}

namespace {

namespace json = boost::json;

std::string day_at(const json::object& object, const char* key) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(number_at(object, key))));
}

std::string hours(double value) {
  return fmt::format("{:.2f} h", value);
}
std::string percent(double part) {
  return fmt::format("{:.0f} %", part * 100);
}

std::string whole_table(const json::object& whole) {
  using Side = Table::Side;
  Table table({{""},
               {"MEAN WAIT", Side::Right},
               {"BY NODE-HOURS", Side::Right},
               {"MEDIAN", Side::Right},
               {"90 % UNTIL", Side::Right},
               {"AT ONCE", Side::Right}});
  for (const char* which : {"real", "played"}) {
    const json::object& waits = *object_at(whole, which);
    table.add({which, hours(number_at(waits, "mean_h")), hours(number_at(waits, "by_node_hours_h")),
               hours(number_at(waits, "median_h")), hours(number_at(waits, "p90_h")),
               percent(number_at(waits, "at_once"))});
  }
  std::string text = table.text(80);
  text += fmt::format("single jobs: {} off on average, logarithms correlate at {:.2f}\n",
                      hours(number_at(whole, "mean_error_h")), number_at(whole, "log_correlation"));
  if (number_at(whole, "never_started") > 0)
    text += fmt::format("{:.0f} more jobs never started when played, and are left out above\n",
                        number_at(whole, "never_started"));
  text += "taken from the trace: ";
  if (flag_at(whole, "nodes_over_time")) text += "nodes as they were in use; ";
  if (number_at(whole, "most_of_user") > 0)
    text += fmt::format("{:.0f} jobs of a user at once;", number_at(whole, "most_of_user"));
  text += fmt::format("\n{:.0f} jobs that came after another of their user\n",
                      number_at(whole, "dependencies"));
  text += fmt::format("played {:.0f} million times as fast as it was\n",
                      number_at(whole, "speed") / 1e6);
  return text;
}

std::string chain_table(const json::object& chain, double cpus_of_a_node) {
  using Side = Table::Side;
  const double nodes = number_at(chain, "pilot_nodes") / std::max(cpus_of_a_node, 1.0);
  std::string text = fmt::format("{:.0f} chains of two pilots of {:.0f} node{}, {} to {}\n",
                                 number_at(chain, "count"), nodes, nodes == 1 ? "" : "s",
                                 day_at(chain, "from"), day_at(chain, "until"));
  Table table({{"POLICY"},
               {"WITHOUT A PILOT", Side::Right},
               {"LESS", Side::Right},
               {"TWO PILOTS", Side::Right},
               {"NO GAP", Side::Right}});
  for (const json::value& each : *array_at(chain, "policies")) {
    const json::object& policy = each.as_object();
    table.add({text_at(policy, "policy"), hours(number_at(policy, "interruption_h")),
               percent(number_at(policy, "cut")), hours(number_at(policy, "overlap_h")),
               percent(number_at(policy, "uninterrupted"))});
  }
  text += table.text(80);
  const json::object& bounds = *object_at(chain, "bounds");
  text += fmt::format("first pilots that started by the look-ahead's 50 %: {}, by its 90 %: {}{}\n",
                      percent(number_at(bounds, "by_50")), percent(number_at(bounds, "by_90")),
                      bounds.at("doubted_after").is_null()
                          ? ""
                          : fmt::format(";\nits bound was no longer trusted after {:.0f}",
                                        number_at(bounds, "doubted_after")));
  return text;
}

}  // namespace

std::string tables(const json::object& found) {
  std::string text =
      fmt::format("{:.0f} jobs, {} to {}, {:.0f} {} at most in use{}\n", number_at(found, "jobs"),
                  day_at(found, "from"), day_at(found, "until"), number_at(found, "most_in_use"),
                  number_at(found, "cpus_of_a_node") > 0 ? "cpus of shared nodes" : "nodes",
                  number_at(found, "skipped") > 0
                      ? fmt::format("; {:.0f} lines skipped", number_at(found, "skipped"))
                      : "");
  for (const json::value& note : *array_at(found, "notes"))
    text += "note: " + std::string(note.as_string()) + "\n";
  text += whole_table(*object_at(found, "whole"));
  if (const json::array* episodes = array_at(found, "episodes")) {
    for (const json::value& chain : *episodes)
      text += "\n" + chain_table(chain.as_object(), number_at(found, "cpus_of_a_node"));
  }
  return text;
}

foresight::Trace read_trace_file(const std::string& file, const std::string& partition) {
  std::istringstream in(text_of_file(file));
  try {
    return foresight::read_trace(in, partition);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument((file == "-" ? "standard input" : file) + ": " + error.what());
  }
}

}  // namespace hpcbatch::sim
