// `waits`, `keep` and `sim`: how long pilots wait, would have waited on a cluster whose past is
// known, and which are to be there without a wait.
#include "cli/parse/parse.hpp"
#include "cli/parse/sim_command.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <CLI/Validators.hpp>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <memory>

namespace hpcbatch::detail {
namespace {

CLI::Range as_many_as_there_may_be() {
  return {std::int64_t{1}, std::int64_t{10'000'000}, "a number up to 10000000"};
}

std::int64_t whole_seconds(const std::string& text) {
  const auto duration = parse_duration(text);
  const auto seconds =
      duration ? std::chrono::duration_cast<std::chrono::seconds>(*duration).count() : 0;
  if (seconds <= 0) throw std::invalid_argument("'" + text + "' is no time such as 90m, 4h or 2d");
  return seconds;
}

double cost_of(const std::string& text) {
  double cost = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cost);
  if (error != std::errc{} || end != text.data() + text.size() || !(cost > 0) || cost > 1e9)
    throw std::invalid_argument("'" + text + "' is no number above 0");
  return cost;
}

std::string backfill_of(const std::string& text) {
  const std::vector<std::string> known{"conservative", "easy", "none"};
  if (std::find(known.begin(), known.end(), text) == known.end())
    throw std::invalid_argument("'" + text + "' is none of conservative, easy, none" +
                                spelling_hint(text, known));
  return text;
}

/// Counted in the trace's own zone.
std::int64_t day_of(const std::string& text) {
  for (const char* form : {"%Y-%m-%d", "%Y-%m-%dT%H:%M"}) {
    std::tm day{};
    const char* end = ::strptime(text.c_str(), form, &day);
    if (end && *end == '\0') return ::timegm(&day);
  }
  throw std::invalid_argument("'" + text + "' is no day such as 2023-01-20 or 2023-01-20T12:00");
}

void add_cluster(CLI::App& verb, SimCommand& sim) {
  verb.add_option("TRACE", sim.trace,
                  "what `sacct -P` printed, or a file in the Standard Workload Format; packed by "
                  "gzip or not; `-`: standard input")
      ->required();
  verb.add_option("--partition", sim.partition, "only jobs of this one (all, if there is one)")
      ->type_name("NAME");
  verb.add_option("--nodes", sim.nodes, "that the cluster has (as many as were in use)")
      ->check(above_zero())
      ->check(as_many_as_there_may_be())
      ->type_name("N");
  add_value(
      verb, "--backfill", "WORD",
      [&sim](const std::string& text) { sim.backfill = backfill_of(text); },
      "of its scheduler: conservative, easy or none (conservative)");
}

void add_episodes(CLI::App& verb, SimCommand& sim) {
  verb.add_flag("--whole", sim.whole, "play the whole trace only, no pilots");
  verb.add_option("--pilot-nodes", sim.pilot_nodes, "sizes of pilots, a table for each (1)")
      ->delimiter(',')
      ->check(above_zero())
      ->check(as_many_as_there_may_be())
      ->type_name("N,N");
  add_value(
      verb, "--pilot-time", "TIME",
      [&sim](const std::string& text) { sim.pilot_time = whole_seconds(text); },
      "how long one runs (2d)");
  add_value(
      verb, "--every", "TIME", [&sim](const std::string& text) { sim.every = whole_seconds(text); },
      "between the starts of two episodes (4h)");
  add_value(
      verb, "--since", "DAY", [&sim](const std::string& text) { sim.since = day_of(text); },
      "the first episode (two weeks into the trace, so that run times are known)");
  add_value(
      verb, "--until", "DAY", [&sim](const std::string& text) { sim.until = day_of(text); },
      "the last (five days before the trace ends)");
  add_value(
      verb, "--waiting-cost", "X",
      [&sim](const std::string& text) { sim.waiting_cost = cost_of(text); },
      "what an hour costs in which work waits for a pilot (19)");
  add_value(
      verb, "--idle-cost", "X", [&sim](const std::string& text) { sim.idle_cost = cost_of(text); },
      "and one in which a pilot is idle (1)");
  add_value(
      verb, "--most-idle", "TIME",
      [&sim](const std::string& text) { sim.most_idle = whole_seconds(text); },
      "that is risked for one pilot, on average (105m)");
}

void add_wrong_model(CLI::App& verb, SimCommand& sim) {
  verb.add_option("--model-nodes", sim.model_nodes,
                  "that the look-ahead takes the cluster for (as many as it has)")
      ->check(above_zero())
      ->check(as_many_as_there_may_be())
      ->type_name("N");
  add_value(
      verb, "--model-backfill", "WORD",
      [&sim](const std::string& text) { sim.model_backfill = backfill_of(text); },
      "the scheduler that it takes it for (the cluster's)");
  verb.add_flag("--unknown-order", sim.unknown_order,
                "it does not know the priorities of those that wait");
  verb.add_option("--hide-each", sim.hide_each, "it does not see each N-th job")
      ->check(above_zero())
      ->check(as_many_as_there_may_be())
      ->type_name("N");
}

void add_waits(CLI::App& app, Command& into) {
  auto waits = std::make_shared<WaitsCommand>();
  auto is_training = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("waits", "how long allocations wait in the queues");
  add_value(
      *verb, "SHAPE", "TEXT",
      [waits, is_training](const std::string& text) {
        if (text == "eval")
          waits->score = true;
        else if (text == "train")
          *is_training = true;
        else
          waits->shape = text;
      },
      "only this one (all); `eval` instead: how good the words of the past were; `train`: learn "
      "from the site's accounting");
  verb->add_option("--site", waits->site, "only this one (all)")->type_name("NAME");
  auto learned = std::make_shared<TrainCommand>();
  CLI::Option* days =
      verb->add_option("--days", learned->days, "of accounting that `train` learns from (30)")
          ->check(CLI::Range(1, 400))
          ->type_name("N");
  CLI::Option* estimator =
      verb->add_option("--estimator", learned->estimator, "the plugin that learns (xgboost)")
          ->type_name("NAME");
  add_json_flag(*verb, waits->json);
  verb->footer(
      "Examples:\n  hpcbatch waits gpu\n  hpcbatch waits eval --site cluster\n"
      "  hpcbatch waits train --site cluster --days 60\n"
      "Of waits that have ended: half were no longer than what is said with 50 %, nine in ten no "
      "longer than with 90 %.  Nothing is said of fewer than ten, nor while the last bounds did "
      "not hold.");
  verb->callback([waits, is_training, learned, days, estimator, &into] {
    if (!*is_training) {
      if (!days->empty() || !estimator->empty())
        throw CLI::ValidationError("waits", "--days and --estimator are for `waits train`");
      into = *waits;
      return;
    }
    learned->site = waits->site;
    learned->json = waits->json;
    into = *learned;
  });
}

void add_keep(CLI::App& app, Command& into) {
  auto keep = std::make_shared<KeepCommand>();
  CLI::App* verb = app.add_subcommand(
      "keep", "have pilots of a shape there until a time, or list the shapes that are kept");
  verb->add_option("SHAPE", keep->shape, "of the configuration (without: list those kept)");
  verb->add_option("--site", keep->site, "the shape's (the only one that has it)")
      ->type_name("NAME");
  CLI::Option* until = add_value(
      *verb, "--until", "TIME",
      [keep](const std::string& text) { keep->until = parse_until(text, std::time(nullptr)); },
      "8h, 18:00, 2026-11-28 or '2026-11-28 18:00'");
  CLI::Option* count = verb->add_option("--count", keep->allocations, "allocations at once (1)")
                           ->check(above_zero())
                           ->check(CLI::Range(1, 10'000))
                           ->type_name("N");
  CLI::Option* end = verb->add_flag("--end", keep->end, "keep it no longer");
  end->excludes(until)->excludes(count);
  add_json_flag(*verb, keep->json);
  verb->footer(
      "Examples:\n  hpcbatch keep gpu --until 18:00\n  hpcbatch keep gpu --end\n"
      "Each allocation's successor is asked for so early that it starts about when the one before "
      "it ends, as far as that can be foreseen (`hpcbatch waits`). Limits of site and shape hold.");
  verb->callback([keep, until, end, &into] {
    if (!keep->shape.empty() && until->empty() && !keep->end)
      throw CLI::ValidationError("keep", "say --until when, or --end");
    if (keep->shape.empty() && (!until->empty() || !end->empty()))
      throw CLI::ValidationError("keep", "say which shape");
    into = *keep;
  });
}

void add_sim(CLI::App& app, Command& into) {
  auto sim = std::make_shared<SimCommand>();
  CLI::App* verb = app.add_subcommand(
      "sim", "replay a trace: how long pilots wait, and what asking for them ahead brings");
  add_cluster(*verb, *sim);
  add_episodes(*verb, *sim);
  add_wrong_model(*verb, *sim);
  verb->add_flag("--json", sim->json, "one JSON object, with stable keys");
  verb->footer(
      "Examples:\n"
      "  sacct -aPXr gpu --noconvert -S 2026-01-01 -E now -o JobID,JobName,User,Submit,Start,\\\n"
      "    End,Priority,Timelimit,NNodes,AllocCPUS,Partition | hpcbatch sim -\n"
      "  hpcbatch sim trace.swf.gz --nodes 128 --pilot-nodes 1,8 --every 1d\n"
      "Each episode: two days of the trace to warm up, then a pilot; until it ends each policy "
      "says "
      "every ten minutes whether to submit the next.");
  verb->callback([sim, &into] { into = *sim; });
}

}  // namespace

void add_foresight_verbs(CLI::App& app, Command& into) {
  add_waits(app, into);
  add_keep(app, into);
  add_sim(app, into);
}

}  // namespace hpcbatch::detail
