// The program `replay`, which `bench/foresight` starts:
//   replay polls PROGRAM [ESTIMATOR] < CSV   how well waits that a queue's polls saw are told
//   replay chains JSON < TRACE               chains of two pilots, asked for by several policies
// Each prints one JSON object.  PROGRAM is `hpcbatch-estimate`, in which the estimator is trained.
#include "estimate/training.hpp"
#include "foresight/replay/fidelity.hpp"
#include "plugin_host/plugin_host.hpp"
#include "replay/episodes.hpp"
#include "replay/poll_replay.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace json = boost::json;
using namespace hpcbatch;
using namespace hpcbatch::foresight;

/// Run times are learned from so much of the trace before the first episode.
constexpr Seconds kLearned = 14 * kDay;
constexpr Seconds kEpisode = 5 * kDay;

/// Trains in a process of its own; what that has made is loaded here.
estimate::Learner learner_of(const std::string& program, const std::string& name) {
  auto made = PluginHost(plugin_search_path({}, "", program)).estimator(name, "");
  if (!made) throw std::invalid_argument(made.error().text);
  return [program, name, estimator = std::shared_ptr<Estimator>(std::move(*made))](
             const TrainingTable& table) -> Result<std::unique_ptr<EstimatorModel>> {
    const auto model = estimate::train_apart({.program = program, .estimator = name}, {"", table});
    if (!model) return model.error();
    return estimator->load(*model);
  };
}

json::object replay_polls(const std::vector<std::string>& words) {
  estimate::ReplayOptions options;
  if (words.size() == 3) {
    options.estimator = words[2];
    options.learner = learner_of(words[1], words[2]);
  }
  return estimate::replay(read_polls(std::cin), options,
                          [](const std::string&, std::size_t, std::size_t) {});
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

/// What is asked for, where it is said.
class Asked {
 public:
  explicit Asked(const json::object& said) : said_(said) {}
  template <class Value>
  Value value(const char* key, Value otherwise) const {
    const json::value* found = said_.if_contains(key);
    return found ? json::value_to<Value>(*found) : otherwise;
  }

 private:
  const json::object& said_;
};

json::object play_chains(const Asked& asked, const Trace& trace, std::int32_t pilot_nodes) {
  Episodes how;
  const auto nodes = asked.value<std::int32_t>("nodes", most_nodes_in_use(trace));
  const auto backfill = asked.value<std::string>("backfill", "conservative");
  how.cluster = large_site(nodes, backfill);
  how.model =
      large_site(asked.value("model_nodes", nodes), asked.value("model_backfill", backfill));
  how.knows_order = !asked.value("unknown_order", false);
  how.hides_each = asked.value<std::size_t>("hide_each", 0);
  how.pilot_nodes = pilot_nodes;
  how.every = asked.value("every", how.every);
  how.from = asked.value("since", trace.jobs.front().job.submitted + kLearned);
  how.until = trace.jobs.back().job.submitted - kEpisode;
  if (how.until < how.from)
    throw std::invalid_argument(
        "the trace is too short for episodes of five days behind the first two weeks");
  how.policies = {Policy::Reactive,  Policy::Mean,       Policy::Quantile,
                  Policy::LookAhead, Policy::MonteCarlo, Policy::AskAhead};
  const EpisodeResults found =
      play_episodes(trace, how, [](std::size_t, std::size_t) { return true; });
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

json::object replay_chains(const std::string& text) {
  const json::value said = json::parse(text);
  const Asked asked(said.as_object());
  Trace trace = read_trace(std::cin);
  // Ranks are the simulator's in an episode, which begins with an empty cluster.
  for (TracedJob& traced : trace.jobs) traced.job.priority = 0;
  json::array episodes;
  for (const std::int32_t size : asked.value<std::vector<std::int32_t>>("pilot_nodes", {1}))
    episodes.push_back(play_chains(asked, trace, size));
  return {{"episodes", std::move(episodes)}};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    json::object found;
    if (words.size() == 2 && words[0] == "chains") {
      found = replay_chains(words[1]);
    } else if (words.size() >= 2 && words[0] == "polls") {
      found = replay_polls(words);
    } else {
      throw std::invalid_argument("say: replay polls PROGRAM [ESTIMATOR], or replay chains JSON");
    }
    std::puts(json::serialize(found).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 2;
  }
}
