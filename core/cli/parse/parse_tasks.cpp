// The verbs that name tasks by their ids.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"
#include "failure/failure.hpp"
#include "model/quantities.hpp"
#include "model/task.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
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

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
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

void add_ids(CLI::App& verb, std::vector<std::string>& ids, const char* what) {
  verb.add_option_function<std::vector<std::string>>(
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
void add_ids(CLI::App& verb, std::vector<std::string>& ids, std::string& name) {
  add_ids(verb, ids, "12, 12.345, 12.1-99, 12-15; last is what was submitted last");
  verb.add_option("--name", name, "all that you have submitted under this name, as 'sweep*'")
      ->type_name("NAME");
}

void check_ids(const std::vector<std::string>& ids, const std::string& name) {
  if (ids.empty() && name.empty())
    throw std::invalid_argument("which ones? Say ids, as 12 or 12.345, or last, or --name NAME");
}

/// With other needs than before.
void add_retry(CLI::App& verb, const std::shared_ptr<ChangeCommand>& command) {
  verb.add_flag("--failed", command->failed_only, "only those that failed, not the cancelled");
  add_values(
      verb, "--failure", "WORD",
      [command](const std::string& t) { command->failures.push_back(checked_failure(t)); },
      "only those that failed so, as oom_task, exit:3 or signal:11; may be given several times");
  add_needs(verb, command->needs,
            {{"cpus", "with so many cpus from now on"},
             {"memory",
              "with so much memory from now on, as 8G; this and the others hold for all of its "
              "submission that has not ended"},
             {"disk", "with so much scratch space from now on"},
             {"time", "with so much time from now on, as 2h"},
             {"gpus",
              "with such GPUs from now on in place of those before, as 2, a100 or 'a100|h100:2'"}});
}

void add_change(CLI::App& app, Command& into, const char* name, const char* description,
                ChangeCommand::Change change) {
  auto command = std::make_shared<ChangeCommand>();
  command->change = change;
  CLI::App* verb = app.add_subcommand(name, description);
  add_ids(*verb, command->ids, command->name);
  if (change == ChangeCommand::Change::Retry) add_retry(*verb, command);
  add_json_flag(*verb, command->json);
  verb->footer(std::string("Examples:\n  hpcbatch ") + name + " 12 13.1-99\n  hpcbatch " + name +
               " last");
  verb->callback([command, &into] {
    check_ids(command->ids, command->name);
    into = *command;
  });
}

double checked_age(const std::string& text) {
  const auto age = parse_duration(text);
  if (!age || *age <= Duration{})
    throw std::invalid_argument("'" + text + "' is not a duration, like 90s, 2h or 3d");
  return std::chrono::duration<double>(*age).count();
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
  auto command = std::make_shared<ListCommand>();
  CLI::App* verb =
      app.add_subcommand("list",
                         "what was submitted, newest first, one line each; or tasks\n"
                         "PROGRESS: # done, x failed, - cancelled, > running, . to come");
  add_ids(*verb, command->ids, "the tasks of these, as 12, 12-15 or last");
  verb->add_flag("--tasks", command->tasks, "tasks; waiting ones of an array are one line");
  add_value(
      *verb, "--state", "STATE",
      [command](const std::string& text) { command->state = checked_state(text); },
      "with tasks in this state: waiting, held, running, finishing, unknown, done, failed, "
      "cancelled");
  add_value(
      *verb, "--failure", "WORD",
      [command](const std::string& text) { command->failure = checked_failure(text); },
      "with tasks that failed so, as oom_task, exit:3 or signal:11");
  verb->add_option("--name", command->name, "of this name, as 'sweep*'")->type_name("NAME");
  verb->add_option("--tool", command->tool, "that run this tool")->type_name("NAME");
  verb->add_option("--site", command->site, "with tasks that ran or run there")->type_name("NAME");
  verb->add_option("--client", command->client, "of this client, as shell:alice")
      ->type_name("CLIENT");
  add_value(
      *verb, "--since", "WHEN",
      [command](const std::string& text) {
        command->since = parse_since(text, std::time(nullptr));
      },
      "submitted since then: 2h, yesterday, monday, 2026-01-31");
  verb->add_option("-n,--limit", command->limit,
                   "at most so many lines (20; of tasks 50; with --json all that a submission has)")
      ->type_name("N")
      ->check(above_zero());
  verb->add_flag("--all", command->all, "all lines there are");
  add_json_flag(*verb, command->json);
  verb->footer(
      "Examples:\n  hpcbatch list --since yesterday --state failed\n"
      "  hpcbatch list last --state failed");
  verb->callback([command, &into] {
    check_list(*command);
    into = *command;
  });
}

void add_log(CLI::App& app, Command& into) {
  auto command = std::make_shared<LogCommand>();
  auto only_out = std::make_shared<bool>(false);
  auto only_err = std::make_shared<bool>(false);
  CLI::App* verb =
      app.add_subcommand("log",
                         "what was printed, standard output and standard error: by a task, or by "
                         "all of a submission in their order");
  add_ids(*verb, command->ids, command->name);
  CLI::Option* follow = verb->add_flag(
      "-f,--follow", command->follow,
      "go on until the task ends; of a submission, what each has printed as they end");
  CLI::Option* attempt =
      verb->add_option("--attempt", command->attempt,
                       "of that attempt, which has ended ('show' has their list)")
          ->type_name("N")
          ->check(above_zero())
          ->excludes(follow);
  verb->add_flag("--failed", command->failed_only,
                 "of a submission, only what failed, all of it on standard output")
      ->excludes(attempt);
  add_value(
      *verb, "--failure", "WORD",
      [command](const std::string& text) { command->failure = checked_failure(text); },
      "of a submission, only what failed so, as oom_task, exit:3 or signal:11")
      ->excludes(follow)
      ->excludes(attempt);
  verb->add_flag("--prefix", command->prefix, "each line with its task's id")->excludes(follow);
  verb->add_option("--tail", command->tail, "of each, only the last N lines")
      ->type_name("N")
      ->check(above_zero())
      ->excludes(follow);
  CLI::Option* out = verb->add_flag("--stdout", *only_out, "only its standard output");
  verb->add_flag("--stderr", *only_err, "only its standard error, to standard output")
      ->excludes(out);
  add_json_flag(*verb, command->json);
  verb->footer(
      "Examples:\n  hpcbatch log --follow 12.345\n  hpcbatch log 12 --failed --prefix --tail 5");
  verb->callback([command, only_out, only_err, &into] {
    check_ids(command->ids, command->name);
    command->standard_output = !*only_err;
    command->standard_error = !*only_out;
    into = *command;
  });
}

}  // namespace

void add_task_verbs(CLI::App& app, Command& into) {
  auto wait = std::make_shared<WaitCommand>();
  CLI::App* verb =
      app.add_subcommand("wait", "wait until tasks have ended: exit 0 if all succeeded, else 1");
  add_ids(*verb, wait->ids, wait->name);
  add_value(
      *verb, "--timeout", "DURATION",
      [wait](const std::string& text) { wait->timeout = text == "0" ? 0 : checked_age(text); },
      "wait so long at most, then exit with 124 (for ever); 0 only looks");
  verb->add_flag("--any", wait->any,
                 "only until some of them have ended, and print which; exit 0 however they ended");
  add_json_flag(*verb, wait->json);
  verb->footer(
      "Examples:\n  hpcbatch wait 12 13\n  hpcbatch wait --timeout 1h last\n"
      "  hpcbatch wait --any 12 13 14");
  verb->callback([wait, &into] {
    check_ids(wait->ids, wait->name);
    into = *wait;
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
  add_list(app, into);

  auto show = std::make_shared<ShowCommand>();
  verb = app.add_subcommand("show", "tasks or submissions in full");
  add_ids(*verb, show->ids, show->name);
  add_json_flag(*verb, show->json);
  verb->footer("Examples:\n  hpcbatch show 12.345\n  hpcbatch show last --json");
  verb->callback([show, &into] {
    check_ids(show->ids, show->name);
    into = *show;
  });

  add_log(app, into);

  auto explain = std::make_shared<ExplainCommand>();
  verb = app.add_subcommand("explain",
                            "why it waits, or how it failed: a task, or all of a submission");
  add_ids(*verb, explain->ids, explain->name);
  add_json_flag(*verb, explain->json);
  verb->footer("Examples:\n  hpcbatch explain 12\n  hpcbatch explain last.7");
  verb->callback([explain, &into] {
    check_ids(explain->ids, explain->name);
    into = *explain;
  });
}

}  // namespace hpcbatch::detail
