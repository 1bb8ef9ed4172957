// The verbs that name tasks by their ids.
#include "cli/flags.hpp"
#include "cli/parse.hpp"
#include "cli/spelled.hpp"
#include "documents/spelling.hpp"
#include "model/task.hpp"

#include <memory>

namespace hpcbatch::detail {
namespace {

void add_ids(CLI::App& verb, std::vector<std::string>& ids) {
  verb.add_option_function<std::vector<std::string>>(
          "ID",
          [&ids](const std::vector<std::string>& texts) {
            try {
              for (const std::string& text : texts) ids.push_back(checked_id(text));
            } catch (const std::invalid_argument& error) {
              throw CLI::ValidationError(error.what());
            }
          },
          "12, 12.345 or 12.1-99")
      ->required()
      ->type_name("");
}

void add_id(CLI::App& verb, std::string& id) {
  add_value(
      verb, "ID", "", [&id](const std::string& text) { id = checked_id(text); }, "12 or 12.345")
      ->required();
}

void add_change(CLI::App& app, Command& into, const char* name, const char* description,
                ChangeCommand::Change change) {
  auto command = std::make_shared<ChangeCommand>();
  command->change = change;
  CLI::App* verb = app.add_subcommand(name, description);
  add_ids(*verb, command->ids);
  add_json_flag(*verb, command->json);
  verb->footer(std::string("Example: hpcbatch ") + name + " 12 13.1-99");
  verb->callback([command, &into] { into = *command; });
}

void add_list(CLI::App& app, Command& into) {
  auto command = std::make_shared<ListCommand>();
  CLI::App* verb =
      app.add_subcommand("list", "tasks, newest first; waiting tasks of an array are one line");
  add_value(
      *verb, "--state", "STATE",
      [command](const std::string& text) {
        if (!parse_task_state(text)) {
          throw std::invalid_argument(
              "'" + text + "' is not a state" +
              spelling_hint(text, {"waiting", "held", "running", "finishing", "unknown", "done",
                                   "failed", "cancelled"}));
        }
        command->state = text;
      },
      "only these: waiting, held, running, finishing, unknown, done, failed, cancelled");
  add_value(
      *verb, "--array", "ID",
      [command](const std::string& text) { command->array = checked_id(text); },
      "only tasks of this array");
  verb->add_option("--client", command->client, "only tasks of this client")->type_name("CLIENT");
  verb->add_option("--limit", command->limit, "at most this many lines (50)")
      ->type_name("N")
      ->check(above_zero());
  verb->add_flag("--all", command->all, "all lines there are");
  add_json_flag(*verb, command->json);
  verb->footer("Example: hpcbatch list --state failed");
  verb->callback([command, &into] { into = *command; });
}

void add_log(CLI::App& app, Command& into) {
  auto command = std::make_shared<LogCommand>();
  auto only_out = std::make_shared<bool>(false);
  auto only_err = std::make_shared<bool>(false);
  CLI::App* verb =
      app.add_subcommand("log", "what a task printed: its standard output and its standard error");
  add_id(*verb, command->id);
  CLI::Option* follow = verb->add_flag("-f,--follow", command->follow, "go on until the task ends");
  verb->add_option("--attempt", command->attempt,
                   "of that attempt, which has ended ('show' has their list)")
      ->type_name("N")
      ->check(above_zero())
      ->excludes(follow);
  CLI::Option* out = verb->add_flag("--stdout", *only_out, "only its standard output");
  verb->add_flag("--stderr", *only_err, "only its standard error")->excludes(out);
  add_json_flag(*verb, command->json);
  verb->footer("Example: hpcbatch log --follow 12.345");
  verb->callback([command, only_out, only_err, &into] {
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
  add_ids(*verb, wait->ids);
  add_json_flag(*verb, wait->json);
  verb->footer("Example: hpcbatch wait 12 13");
  verb->callback([wait, &into] { into = *wait; });

  using Change = ChangeCommand::Change;
  add_change(app, into, "cancel", "end tasks: TERM, after 5 s KILL", Change::Cancel);
  add_change(app, into, "hold", "keep waiting tasks from starting", Change::Hold);
  add_change(app, into, "release", "let held tasks start", Change::Release);
  add_change(app, into, "retry", "run tasks again that failed or were cancelled", Change::Retry);
  add_list(app, into);

  auto show = std::make_shared<ShowCommand>();
  verb = app.add_subcommand("show", "one task or array in full");
  add_id(*verb, show->id);
  add_json_flag(*verb, show->json);
  verb->footer("Example: hpcbatch show 12.345");
  verb->callback([show, &into] { into = *show; });

  add_log(app, into);

  auto explain = std::make_shared<ExplainCommand>();
  verb = app.add_subcommand("explain", "why a task waits, or how it failed");
  add_id(*verb, explain->id);
  add_json_flag(*verb, explain->json);
  verb->footer("Example: hpcbatch explain 12");
  verb->callback([explain, &into] { into = *explain; });
}

}  // namespace hpcbatch::detail
