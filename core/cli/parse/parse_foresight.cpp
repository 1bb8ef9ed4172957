// `waits`, `keep` and `sim`: how long pilots wait, which are to be there without a wait, and a
// cluster's past played.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"

#include <CLI/Validators.hpp>

#include <algorithm>
#include <ctime>
#include <memory>

namespace hpcbatch::detail {
namespace {

std::string backfill_of(const std::string& text) {
  const std::vector<std::string> known{"conservative", "easy", "none"};
  if (std::find(known.begin(), known.end(), text) == known.end())
    throw std::invalid_argument("'" + text + "' is none of conservative, easy, none" +
                                spelling_hint(text, known));
  return text;
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
  CLI::App* verb =
      app.add_subcommand("sim", "play a cluster's past: how near waits are told that really were");
  verb->add_option("TRACE", sim->trace,
                   "what `sacct -P` printed; packed by gzip or not; `-`: standard input")
      ->required();
  verb->add_option("--partition", sim->partition, "only jobs of this one (all, if there is one)")
      ->type_name("NAME");
  verb->add_option("--nodes", sim->nodes, "that the cluster has (as many as were in use)")
      ->check(above_zero())
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}, "a number up to 10000000"))
      ->type_name("N");
  add_value(
      *verb, "--backfill", "WORD",
      [sim](const std::string& text) { sim->backfill = backfill_of(text); },
      "of its scheduler: conservative, easy or none (conservative)");
  add_json_flag(*verb, sim->json);
  verb->footer(
      "Examples:\n"
      "  sacct -aPXr gpu --noconvert -S 2026-01-01 -E now -o JobID,JobName,User,Submit,Start,\\\n"
      "    End,Priority,Timelimit,NNodes,AllocCPUS,Partition | hpcbatch sim -\n"
      "  hpcbatch sim trace.gz --nodes 128 --backfill easy");
  verb->callback([sim, &into] { into = *sim; });
}

}  // namespace

void add_foresight_verbs(CLI::App& app, Command& into) {
  add_waits(app, into);
  add_keep(app, into);
  add_sim(app, into);
}

}  // namespace hpcbatch::detail
