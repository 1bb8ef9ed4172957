// `waits`, `keep` and `sim`: how long pilots wait, which are to be there without a wait, and a
// cluster's past played.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"

#include <algorithm>
#include <ctime>

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
  struct Asked {
    WaitsCommand waits;
    TrainCommand training;
    bool is_training{false};
    operator Command() const { return is_training ? Command(training) : Command(waits); }
  };
  add_verb<Asked>(
      app, into, "waits", "how long allocations wait in the queues",
      "Examples:\n  hpcbatch waits gpu\n  hpcbatch waits eval --site cluster\n"
      "  hpcbatch waits train --site cluster --days 60\n"
      "Half of earlier waits were no longer than the time printed for 50 %, nine in ten no longer "
      "than that for 90 %.  A forecast from earlier waits needs ten of them, and stops while "
      "its last ones were wrong.",
      [](Verb& verb, Asked& made) {
        verb.read(
                "SHAPE", "",
                [&made](const std::string& text) {
                  made.is_training = text == "train";
                  made.waits.score = text == "eval";
                  if (!made.is_training && !made.waits.score) made.waits.shape = text;
                },
                "only this one (all); `eval` instead: how good earlier forecasts were; "
                "`train`: learn from the site's accounting")
            .option("--site", "NAME", made.waits.site, "only this one (all)")
            .count("--days", made.training.days, "of accounting that `train` learns from (30)", 400)
            .option("--estimator", "NAME", made.training.estimator,
                    "the plugin that learns (xgboost)")
            .json(made.waits.json)
            .at_last([&made, &words = verb.app()] {
              made.training.site = made.waits.site;
              made.training.json = made.waits.json;
              if (!made.is_training && words.count("--days") + words.count("--estimator") > 0)
                throw std::invalid_argument("--days and --estimator are for `waits train`");
            });
      });
}

std::int64_t until_of(const std::string& text) {
  return parse_until(text, std::time(nullptr));
}

void add_keep(CLI::App& app, Command& into) {
  add_verb<KeepCommand>(
      app, into, "keep",
      "keep pilots of a shape running until a given time, or list the shapes that are kept",
      "Examples:\n  hpcbatch keep gpu --until 18:00\n  hpcbatch keep gpu --end\n"
      "The next allocation is requested early enough to start about when the one before it ends, "
      "as far as that can be foreseen (`hpcbatch waits`). Limits of site and shape hold.",
      [](Verb& verb, KeepCommand& made) {
        verb.option("SHAPE", "", made.shape, "of the configuration (without: list those kept)")
            .option("--site", "NAME", made.site, "the shape's (the only one that has it)")
            .value("--until", "TIME", made.until, until_of,
                   "8h, 18:00, 2026-11-28 or '2026-11-28 18:00'")
            .count("--count", made.allocations, "allocations at once (1)", 10'000)
            .flag("--end", made.end, "keep it no longer")
            .excludes("--until")
            .excludes("--count")
            .json(made.json)
            .at_last([&made] {
              const bool says_until = made.until != 0 || made.end;
              if (!made.shape.empty() && !says_until)
                throw std::invalid_argument("say --until when, or --end");
              if (made.shape.empty() && says_until) throw std::invalid_argument("say which shape");
            });
      });
}

void add_sim(CLI::App& app, Command& into) {
  add_verb<SimCommand>(
      app, into, "sim",
      "simulate a cluster's past: how close forecasts of waits come to the real waits",
      "Examples:\n"
      "  sacct -aPXr gpu --noconvert -S 2026-01-01 -E now -o JobID,JobName,User,Submit,Start,\\\n"
      "    End,Priority,Timelimit,NNodes,AllocCPUS,Partition | hpcbatch sim -\n"
      "  hpcbatch sim trace.gz --nodes 128 --backfill easy",
      [](Verb& verb, SimCommand& made) {
        verb.option("TRACE", "", made.trace,
                    "what `sacct -P` printed; packed by gzip or not; `-`: standard input")
            .required()
            .option("--partition", "NAME", made.partition,
                    "only jobs of this one (all, if there is one)")
            .count("--nodes", made.nodes, "that the cluster has (as many as were in use)",
                   10'000'000)
            .value("--backfill", "WORD", made.backfill, backfill_of,
                   "of its scheduler: conservative, easy or none (conservative)")
            .json(made.json);
      });
}

}  // namespace

void add_foresight_verbs(CLI::App& app, Command& into) {
  add_waits(app, into);
  add_keep(app, into);
  add_sim(app, into);
}

}  // namespace hpcbatch::detail
