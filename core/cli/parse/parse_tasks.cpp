// The verbs that name tasks by their ids.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"
#include "failure/failure.hpp"
#include "model/quantities.hpp"
#include "model/task.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace hpcbatch::detail {
namespace {

// Each returns the word as it came, or throws std::invalid_argument with one sentence that proposes
// what was meant, also where it is the word of another program.

/// Of squeue, sacct, qstat, hq and Galaxy.
constexpr std::array kStatesElsewhere{
    NamedElsewhere{"waiting", "pending queued pd q new submitted ready idle blocked"},
    NamedElsewhere{"held", "hold h paused"},
    NamedElsewhere{"running", "r active started"},
    NamedElsewhere{"finishing", "completing cg e"},
    NamedElsewhere{"done", "completed complete success successful succeeded ok finished cd ended"},
    NamedElsewhere{"failed", "f error errors failure timeout oom out_of_memory node_fail"},
    NamedElsewhere{"cancelled", "canceled ca aborted killed deleted"},
};

constexpr std::array kFailuresElsewhere{
    NamedElsewhere{"oom_task", "oom memory out_of_memory oom_kill oom_killed mem"},
    NamedElsewhere{"time_task", "timeout time time_limit timelimit to"},
    NamedElsewhere{"disk_task", "disk"},
    NamedElsewhere{"tool_failed", "exit exit_code error failed tool nonzero"},
    NamedElsewhere{"tool_signal", "signal crash segfault"},
    NamedElsewhere{"node_lost", "node_fail node nf"},
    NamedElsewhere{"pilot_preempted", "preempted pr"},
    NamedElsewhere{"cancelled", "canceled ca"},
    NamedElsewhere{"gpu_error", "gpu xid"},
    NamedElsewhere{"oom_gpu", "gpu_oom cuda_oom oom_cuda"},
};

const std::vector<std::string> kStates{"waiting", "held", "running", "finishing",
                                       "unknown", "done", "failed",  "cancelled"};

std::string meant(const std::string& theirs, const std::string& text,
                  const std::vector<std::string>& known) {
  return theirs.empty() ? spelling_hint(text, known) : "; did you mean '" + theirs + "'?";
}

/// `waiting`, `done`, ...
const std::string& checked_state(const std::string& text) {
  if (parse_task_state(text)) return text;
  const std::string theirs = meant_elsewhere(kStatesElsewhere, lower_case(text));
  throw std::invalid_argument("'" + text + "' is not a state" + meant(theirs, text, kStates));
}

/// `tool_failed`, `oom_task`, ...
const std::string& checked_failure(const std::string& text) {
  if (parse_failure_choice(text)) return text;
  const std::string code = text.substr(std::min(text.find_first_of("0123456789"), text.size()));
  if (lower_case(text).starts_with("exit") && parse_failure_choice("exit:" + code))
    throw std::invalid_argument("'" + text + "' is not a failure; did you mean 'exit:" + code +
                                "'?");
  const std::vector<std::string> known(kFailureWords.begin() + 1, kFailureWords.end());
  throw std::invalid_argument(
      "'" + text + "' is not a failure" +
      meant(meant_elsewhere(kFailuresElsewhere, lower_case(text)), text, known));
}

void add_ids(Verb& verb, std::vector<std::string>& ids, const char* what) {
  verb.app()
      .add_option_function<std::vector<std::string>>(
          "ID",
          [&ids](const std::vector<std::string>& texts) {
            try {
              for (const std::string& text : texts) ids.push_back(checked_id(text));
            } catch (const std::invalid_argument& error) {
              throw CLI::ValidationError(error.what());
            }
          },
          what)
      ->type_name("");
}

/// Ids, or the name of submissions.
void add_ids(Verb& verb, std::vector<std::string>& ids, std::string& name) {
  add_ids(verb, ids, "12, 12.345, 12.1-99, 12-15; last is what was submitted last");
  verb.option("--name", "NAME", name, "all that you have submitted under this name, as 'sweep*'");
  verb.at_last([&ids, &name] {
    if (ids.empty() && name.empty())
      throw std::invalid_argument("which ones? Say ids, as 12 or 12.345, or last, or --name NAME");
  });
}

/// With other needs than before.
void add_retry(Verb& verb, ChangeCommand& made) {
  verb.flag("--failed", made.failed_only, "only those that failed, not the cancelled")
      .values("--failure", "WORD", made.failures, checked_failure,
              "only those that failed so, as oom_task, exit:3 or signal:11; may be given several "
              "times");
  add_needs(verb, made.needs,
            {{"cpus", "with so many cpus from now on"},
             {"memory",
              "with so much memory from now on, as 8G; this and the others hold for all of its "
              "submission that has not ended"},
             {"disk", "with so much scratch space from now on"},
             {"time", "with so much time from now on, as 2h"},
             {"gpus",
              "with such GPUs from now on in place of those before, as 2, a100 or 'a100|h100:2'"}});
}

void add_change(CLI::App& app, Command& into, const std::string& name, const char* description,
                ChangeCommand::Change change) {
  const std::string call = "\n  hpcbatch " + name;
  add_verb<ChangeCommand>(app, into, name, description,
                          "Examples:" + call + " 12 13.1-99" + call + " last",
                          [change](Verb& verb, ChangeCommand& made) {
                            made.change = change;
                            add_ids(verb, made.ids, made.name);
                            if (change == ChangeCommand::Change::Retry) add_retry(verb, made);
                            verb.json(made.json);
                          });
}

void add_signal(CLI::App& app, Command& into) {
  add_verb<ChangeCommand>(
      app, into, "signal", "send a signal to running tasks; exit 1 where none of them runs",
      "Examples:\n  hpcbatch signal 12.1-99 --signal USR1\n  hpcbatch signal last --signal TERM "
      "--to first",
      [](Verb& verb, ChangeCommand& made) {
        made.change = ChangeCommand::Change::Signal;
        add_ids(verb, made.ids, made.name);
        verb.option("--signal", "NAME", made.signal, "as USR1, TERM or 10")
            .required()
            .option("--to", "WHICH", made.to,
                    "all: each process of the task (all); first: its command alone; steps: what an "
                    "srun in it has started")
            .json(made.json);
      });
}

void add_update(CLI::App& app, Command& into) {
  add_verb<ChangeCommand>(
      app, into, "update",
      "change what waiting and held tasks ask for; tasks that run take a new --name, --priority, "
      "--retries, --max-running and --requeue, and keep the rest. Either all submissions that you "
      "name are changed, or none is",
      "Examples:\n  hpcbatch update 12-15 --priority 10 --mem 8G\n  hpcbatch update last --time 2h "
      "--after 11",
      [](Verb& verb, ChangeCommand& made) {
        made.change = ChangeCommand::Change::Update;
        add_ids(verb, made.ids, "12, 12-15; last is what was submitted last");
        verb.at_last([&made] {
          if (made.ids.empty())
            throw std::invalid_argument("which ones? Say ids, as 12 or 12-15, or last");
          if (made.needs.said.empty())
            throw std::invalid_argument(
                "what is to change? Say it as for submit: --priority 10, --mem 8G");
        });
        add_update_options(verb, made.needs);
        verb.group("Options").json(made.json);
      });
}

double timeout_of(const std::string& text) {
  return text == "0" ? 0 : seconds_of(text);
}

void check_list(const ListCommand& list) {
  const bool of_tasks = list.tasks || !list.ids.empty();
  for (const std::string& id : list.ids) {
    if (id.find('.') != std::string::npos)
      throw std::invalid_argument("list shows all tasks of a submission, as 12; `hpcbatch show " +
                                  id + "` shows that");
  }
  if (of_tasks &&
      (!list.name.empty() || !list.tool.empty() || !list.site.empty() || list.since.has_value())) {
    throw std::invalid_argument(
        "--name, --tool, --site and --since choose submissions; of tasks, --state, --failure and "
        "--client do");
  }
}

void add_list(CLI::App& app, Command& into) {
  add_verb<ListCommand>(
      app, into, "list",
      "what was submitted, newest first, one line each; or tasks\n"
      "PROGRESS: # done, x failed, - cancelled, > running, . to come",
      "Examples:\n  hpcbatch list --since yesterday --state failed\n"
      "  hpcbatch list last --state failed",
      [](Verb& verb, ListCommand& made) {
        add_ids(verb, made.ids, "the tasks of these, as 12, 12-15 or last");
        verb.flag("--tasks", made.tasks, "tasks; waiting ones of an array are one line")
            .value("--state", "STATE", made.state, checked_state,
                   "with tasks in this state: waiting, held, running, finishing, unknown, done, "
                   "failed, cancelled")
            .value("--failure", "WORD", made.failure, checked_failure,
                   "with tasks that failed so, as oom_task, exit:3 or signal:11")
            .option("--name", "NAME", made.name, "of this name, as 'sweep*'")
            .option("--tool", "NAME", made.tool, "that run this tool")
            .option("--site", "NAME", made.site, "with tasks that ran or run there")
            .option("--client", "CLIENT", made.client, "of this client, as shell:alice")
            .value("--since", "WHEN", made.since, since_now,
                   "submitted since then: 2h, yesterday, monday, 2026-01-31")
            .count("-n,--limit", made.limit,
                   "at most so many lines (20; of tasks 50; with --json all that a submission has)")
            .flag("--all", made.all, "all lines there are")
            .json(made.json)
            .at_last([&made] { check_list(made); });
      });
}

void add_log(CLI::App& app, Command& into) {
  struct Asked : LogCommand {
    bool only_out{false}, only_err{false};
  };
  add_verb<Asked>(
      app, into, "log",
      "what was printed, standard output and standard error: by a task, or by all of a submission "
      "in their order",
      "Examples:\n  hpcbatch log --follow 12.345\n  hpcbatch log 12 --failed --prefix --tail 5",
      [](Verb& verb, Asked& made) {
        add_ids(verb, made.ids, made.name);
        verb.flag("-f,--follow", made.follow,
                  "go on until the task ends; of a submission, what each has printed as they end")
            .count("--attempt", made.attempt,
                   "of that attempt, which has ended ('show' has their list)")
            .excludes("--follow")
            .flag("--failed", made.failed_only,
                  "of a submission, only what failed, all of it on standard output")
            .excludes("--attempt")
            .value("--failure", "WORD", made.failure, checked_failure,
                   "of a submission, only what failed so, as oom_task, exit:3 or signal:11")
            .excludes("--follow")
            .excludes("--attempt")
            .flag("--prefix", made.prefix, "each line with its task's id")
            .excludes("--follow")
            .count("--tail", made.tail, "of each, only the last N lines")
            .excludes("--follow")
            .flag("--stdout", made.only_out, "only its standard output")
            .flag("--stderr", made.only_err, "only its standard error, to standard output")
            .excludes("--stdout")
            .json(made.json);
        verb.at_last([&made] {
          made.standard_output = !made.only_err;
          made.standard_error = !made.only_out;
        });
      });
}

}  // namespace

void add_task_verbs(CLI::App& app, Command& into) {
  add_verb<WaitCommand>(
      app, into, "wait", "wait until tasks have ended: exit 0 if all succeeded, else 1",
      "Examples:\n  hpcbatch wait 12 13\n  hpcbatch wait --timeout 1h last\n"
      "  hpcbatch wait --any 12 13 14",
      [](Verb& verb, WaitCommand& made) {
        add_ids(verb, made.ids, made.name);
        verb.value("--timeout", "DURATION", made.timeout, timeout_of,
                   "wait so long at most, then exit with 124 (for ever); 0 only looks")
            .flag("--any", made.any,
                  "only until some of them have ended, and print which; exit 0 however they ended")
            .json(made.json);
      });
  using Change = ChangeCommand::Change;
  add_change(app, into, "cancel", "end tasks: TERM, after 5 s KILL", Change::Cancel);
  add_change(app, into, "hold", "keep waiting tasks from starting", Change::Hold);
  add_change(app, into, "release", "let held tasks start", Change::Release);
  add_change(
      app, into, "retry",
      "run tasks again that failed or were cancelled, with the commands and items that they had (a "
      "mended list of items: submit --each FILE --skip-done ID)",
      Change::Retry);
  add_change(app, into, "requeue", "end tasks that run, and run them again; that costs no retry",
             Change::Requeue);
  add_update(app, into);
  add_signal(app, into);
  add_verb<NodeRunCommand>(app, into, "node-run",
                           "inside a task of --nodes N: run a command on its nodes, on each once "
                           "or as often as --ntasks "
                           "says; $HPCBATCH_RANK and $HPCBATCH_NODE_INDEX count from 0",
                           "Examples:\n  hpcbatch run --nodes 2 -- hpcbatch node-run hostname\n  "
                           "hpcbatch node-run -n 8 -K "
                           "./solve",
                           [](Verb& verb, NodeRunCommand& made) {
                             verb.count("-n", made.processes,
                                        "so many processes on all nodes together")
                                 .count("-N", made.nodes, "only on the first so many nodes")
                                 .option("-w", "NODE,...", made.names, "only on these nodes")
                                 .flag("-K", made.ends_others, "end the others when one fails");
                             verb.app().prefix_command();
                           });
  add_verb<TimeLeftCommand>(
      app, into, "time-left",
      "inside a task: the seconds until it is asked to end, by its time limit or its pilot's end",
      "Examples:\n  hpcbatch time-left\n  while [ $(hpcbatch time-left) -gt 300 ]; do step; done",
      [](Verb& verb, TimeLeftCommand& made) { verb.json(made.json); });
  add_list(app, into);
  const auto of_ids = [](Verb& verb, auto& made) {
    add_ids(verb, made.ids, made.name);
    verb.json(made.json);
  };
  add_verb<ShowCommand>(app, into, "show", "tasks or submissions in full",
                        "Examples:\n  hpcbatch show 12.345\n  hpcbatch show last --json", of_ids);
  add_log(app, into);
  add_verb<ExplainCommand>(app, into, "explain",
                           "why it waits, or how it failed: a task, or all of a submission",
                           "Examples:\n  hpcbatch explain 12\n  hpcbatch explain last.7", of_ids);
}

}  // namespace hpcbatch::detail
