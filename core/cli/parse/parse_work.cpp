// The verbs that hand in work, and the needs that they share.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/task_values.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <CLI/Validators.hpp>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hpcbatch::detail {
namespace {

/// `NAME` alone hands on what it is here.
std::pair<std::string, std::string> parse_env(const std::string& text) {
  if (text.find('=') != std::string::npos) return parse_assignment(text, "--env");
  const char* value = std::getenv(text.c_str());
  if (value == nullptr) {
    throw std::invalid_argument("'" + text + "' is not set here; say --env NAME=VALUE");
  }
  return {text, value};
}

/// The next comma that stands in no quotation marks, which stay a part of the value.
std::size_t item_end(const std::string& text, std::size_t at) {
  for (char quote = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote == 0 && c == ',') break;
    if (c == quote)
      quote = 0;
    else if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
  }
  return at;
}

/// In any case, as sbatch reads them.
bool is_word(const std::string& text, std::string_view word) {
  return upper_case(text) == word;
}

/// sbatch(1), --export.
void read_export(const std::string& text, WorkOptions& work) {
  std::vector<std::string> names;
  bool has_all = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = item_end(text, at);
    const std::string one = text.substr(at, end - at);
    at = end + 1;
    // As of a list whose last variable is not set.
    if (one.empty() && text.size() > 1) continue;
    if (one.empty() || one.front() == '=')
      throw std::invalid_argument("'" + text + "' is no list; write ALL, NONE, or as ALL,NAME,A=1");
    if (is_word(one, "ALL")) {
      has_all = true;
    } else if (one.find('=') != std::string::npos) {
      work.said["env"].push_back(one);
    } else if (!is_word(one, "NONE")) {
      names.push_back(one);
    }
  }
  if (!has_all) work.exported = std::move(names);
}

/// What the table's grammar does not say: ids, and variables that are handed on.
std::string as_said(const TaskKey& key, const std::string& text) {
  using Type = TaskKey::Type;
  if (key.name == "after_start") {
    const std::size_t delay = delay_at(text);
    return checked_id(text.substr(0, delay)) + text.substr(delay);
  }
  if (key.type == Type::Ids) return checked_id(text);
  if (key.type != Type::Variables && key.type != Type::Values && key.type != Type::Files)
    return text;
  const auto [name, value] =
      key.name == "env" ? parse_env(text) : parse_assignment(text, key.flag());
  return name + "=" + value;
}

/// How a value of it is written.
std::string form_of(const TaskKey& key) {
  using Type = TaskKey::Type;
  if (key.type == Type::Size) return fmt::format(": bytes, or as {}", key.example);
  if (key.type == Type::TimeSpan) return fmt::format(": seconds, or as 90s, {}", key.example);
  return key.type == Type::Capability ? fmt::format(", as {}", key.example) : "";
}

void add_key(Verb& verb, WorkOptions& work, const TaskKey& key) {
  const auto store = [&work, &key](const std::string& text) {
    std::vector<std::string> texts;
    if (const auto at = work.said.find(key.name); at != work.said.end()) texts = at->second;
    texts.push_back(as_said(key, text));
    task_value(key, texts);
    work.said[std::string(key.name)] = std::move(texts);
  };
  const std::string says =
      fmt::format("{}{}{}", key.says, form_of(key),
                  key.standard.empty() ? "" : fmt::format(" ({})", key.standard));
  const std::string flag(key.flag()), operand(key.operand());
  if (operand.empty())
    verb.app().add_flag_callback(
        flag, [store] { store("true"); }, std::string(key.says));
  else if (takes_several(key.type))
    verb.read_each(flag, operand, store, says);
  else
    verb.read(flag, operand, store, says);
}

/// What a batch job chooses, as tags of the task.
void add_choices(Verb& verb, WorkOptions& work) {
  verb.group("Needs");
  for (const auto& [key, what] :
       {std::pair{"partition", "only in this partition, or in one of A,B"},
        {"account", "in batch jobs of this account"},
        {"qos", "in batch jobs of this quality of service"},
        {"reservation", "in batch jobs of this reservation"},
        {"constraint", "on nodes that have this"}}) {
    verb.read(
        fmt::format("--{}", key), "NAME",
        [&work, key = key](const std::string& text) {
          work.said["tags"].push_back(fmt::format("{}={}", key, text));
        },
        what);
  }
}

/// GNU parallel's: here items are an option.
constexpr std::string_view kBeforeItems = ":::";

void add_items(Verb& verb, ItemOptions& items) {
  // Those with the items in the order in which they come.
  verb.read_each(
      "--each", "FILE",
      [&items](const std::string& file) {
        items.sources.push_back({file, {}});
      },
      "one task for each line; - is standard input. In the command, in paths and in the name {} is "
      "the line, {/} its name without the folder, {//} the folder, {.} without the ending, {/.} "
      "the name without it, {#} its number; empty lines do not count. Of JSON lines {NAME} is a "
      "field. Several give all combinations, whose parts are {1}, {2}, {2/} and so on");
  verb.app().get_option("--each")->trigger_on_parse();
  verb.app()
      .add_option_function<std::vector<std::string>>(
          "--items",
          [&items](std::vector<std::string> words) {
            for (std::string& word : words) {
              if (word.starts_with(kItemMark)) word.erase(0, 1);
            }
            if (std::find(words.begin(), words.end(), kBeforeItems) != words.end()) {
              throw CLI::ValidationError(
                  "--items", "':::' is GNU parallel's; a second list is a second --items");
            }
            items.sources.push_back({"", std::move(words)});
          },
          "one task for each of these words, which end at `--` or at an option; --items=WORD takes "
          "one that looks like an option")
      ->trigger_on_parse()
      ->type_name("WORD...");
  verb.flag("-0,--null", items.null,
            "items that --each reads end with a zero byte, as find -print0 writes them");
  verb.app().get_option("--null")->needs("--each");
  verb.option("--columns", "SEPARATOR", items.columns,
              "a line has several items, {1}, {2} and so on, between these: a text, tab, or space "
              "for any blanks")
      .flag("--header", items.header, "the first line has names for the columns: {NAME}")
      .flag("--link", items.link,
            "combine the first items of several lists, then the second ones, and so on");
}

void add_many(Verb& verb, ManyOptions& many) {
  verb.group("Many").value(
      "--array", "RANGE", many.array, parse_array,
      "one task for each index: 1-100, 1-100:2 (every second) or 1-100%8 (at most 8 at once), "
      "which it finds in HPCBATCH_TASK_INDEX; from 0 as well (0-9), where ids still count from 1. "
      "With --each or --items: only the items of these numbers");
  add_items(verb, many.items);
  verb.values(
          "--skip-done", "ID", many.skip_done, checked_id,
          "skip items that succeeded in that submission or in those that it skipped itself: after "
          "you corrected a list, only new and failed items run; items keep their numbers; may be "
          "repeated")
      .count("--max-running", many.max_running, "run at most this many at once (no limit)")
      .value("--max-fails", "N", many.halt, parse_max_fails,
             "after more failures, cancel the tasks that have not started (no limit); running ones "
             "may fail too")
      .value("--halt", "WHEN,fail=N[%]", many.halt, parse_halt,
             "after N failures, or N percent, start no more tasks (soon), or also end running ones "
             "(now); never")
      .excludes("--max-fails");
}

void add_run(CLI::App& app, Command& into) {
  add_verb<RunCommand>(
      app, into, "run",
      "run one task, stream its output, exit with its code (125: hpcbatch failed); or many, and "
      "exit with 0 if all succeeded, else 1",
      "Examples:\n  hpcbatch run --cpus 4 --mem 8G --time 1h -- sort big.txt\n"
      "  hpcbatch run --items *.wav -- ffmpeg -i {} {.}.mp3",
      [](Verb& verb, RunCommand& made) {
        add_work_options(verb, made.work);
        add_many(verb, made.many);
        verb.flag("--keep-order", made.keep_order,
                  "print output in the order of the items, not as tasks end")
            .flag("--prefix", made.prefix, "begin each line of output with its task's id")
            .option("--joblog", "FILE", made.joblog,
                    "write a line for each task that has ended, in GNU parallel's format")
            .option("--key", "KEY", made.key, "your name for this work, for --resume")
            .flag("--resume", made.resume, "skip tasks that succeeded under this key");
      });
}

/// A file of tasks would be run by a shell.
void check_script(const SubmitCommand& submit) {
  for (const char* ending : {".yaml", ".yml", ".toml", ".jsonl", ".ndjson", ".json"}) {
    if (submit.script.ends_with(ending))
      throw std::invalid_argument(submit.script +
                                  " is no script; a file of tasks is `hpcbatch submit " +
                                  "--file " + submit.script + "`");
  }
}

void add_submit(CLI::App& app, Command& into) {
  add_verb<SubmitCommand>(
      app, into, "submit",
      "queue a command, a script, an array or a file of tasks, and print their ids",
      "Examples:\n  hpcbatch submit job.sh\n  hpcbatch submit --array 1-100%20 -- sh -c 'process "
      "part.$HPCBATCH_TASK_INDEX'\n"
      "  hpcbatch submit --items *.wav -- ffmpeg -i {} {.}.mp3\n"
      "  hpcbatch submit --each table.csv --columns , --header -- fit {sample} {lambda}",
      [](Verb& verb, SubmitCommand& made) {
        verb.option("SCRIPT", "", made.script,
                    "a script with lines `#HPCBATCH --cpus 4`, or `#SBATCH` or `#PBS` lines; its "
                    "arguments follow `--`");
        add_work_options(verb, made.work, true);
        verb.group("Order and retries")
            .option("--key", "KEY", made.key, "the same key again gives the same ids");
        add_many(verb, made.many);
        verb.option("--file", "FILE", made.file,
                    "tasks from a .yaml, .toml or .jsonl file (`hpcbatch help task-file`); -: JSON "
                    "lines on standard input")
            .group("Order and retries")
            .flag("--dry-run", made.dry_run,
                  "queue nothing; show what would run, and in which shapes (exit 2: in none)")
            .flag("--print-request", made.print_request,
                  "queue nothing; print what would be sent to the engine, as JSON")
            .flag("--wait", made.wait, "wait until all have ended: exit 0 if all succeeded, else 1")
            .group("Options")
            .json(made.json)
            .at_last([&made] { check_script(made); });
      });
}

}  // namespace

void add_work_options(Verb& verb, WorkOptions& work, bool is_submit) {
  for (const char* group : {"Needs", "Environment", "Order and retries", "Tool", "Files"}) {
    verb.group(group);
    for (const TaskKey& key : task_keys()) {
      if (key.group == group && (is_submit || !key.more.only_submit)) add_key(verb, work, key);
    }
  }
  add_choices(verb, work);
  verb.group("Order and retries")
      .app()
      .add_flag_callback(
          "--no-requeue", [&work] { work.said["requeue"] = {"false"}; }, "as --requeue no")
      ->excludes(verb.app().get_option("--requeue"));
  verb.group("Environment")
      .read(
          "--export", "LIST", [&work](const std::string& text) { read_export(text, work); },
          "which of your variables the task gets: ALL, NONE (only HOME, PATH, LANG and a few "
          "others), "
          "or a list of NAME and NAME=VALUE between commas; ALL in the list adds them to all "
          "(ALL)");
}

void add_update_options(Verb& verb, WorkOptions& work) {
  verb.group("What changes");
  for (const char* name :
       {"name", "priority", "cpus", "memory", "disk", "gpus", "time", "site", "retries", "after",
        "after_any", "after_each", "after_start", "after_failed", "begin", "deadline", "requeue"})
    add_key(verb, work, *find_task_key(name));
  verb.read(
      "--max-running", "N",
      [&work](const std::string& text) {
        task_value(*find_task_key("max_running"), text);
        work.said["max_running"] = {text};
      },
      "of an array, at most so many at once; 0: no bound");
  add_choices(verb, work);
}

void add_needs(Verb& verb, WorkOptions& needs,
               const std::vector<std::pair<std::string_view, std::string>>& keys) {
  for (const auto& [name, says] : keys) {
    const TaskKey& key = *find_task_key(name);
    verb.read(
        std::string(key.flag()), std::string(key.operand()),
        [&needs, &key](const std::string& text) {
          task_value(key, text);
          needs.said[std::string(key.name)] = {text};
        },
        says);
  }
}

void add_work_verbs(CLI::App& app, Command& into) {
  add_run(app, into);
  add_submit(app, into);
}

// `split`: a data set as tasks of some files each, and one result.

namespace {

void add_data_set(Verb& verb, SplitOptions& split) {
  verb.group("Data set")
      .option("--inputs", "FILE", split.inputs, "the files, one path a line; - is standard input")
      .count("--files-per-task", split.files_per_task, "at most this many files in a part (1)")
      .value("--bytes-per-task", "SIZE", split.bytes_per_task, checked_size,
             "at most this size of files in a part, unless one file alone is larger (no limit)")
      .option("--reuse", "FILE", split.reuse,
              "files that every part gets too, one path a line (none)")
      .option("--recording", "FILE", split.recording,
              "a recording, which the tool cuts where it is silent")
      .count("--pieces", split.pieces, "cut it into this many pieces", 10'000)
      .value("--piece-length", "DURATION", split.piece_length, checked_duration,
             "cut it into pieces of about this length");
}

void add_result(Verb& verb, SplitOptions& split) {
  verb.group("Result")
      .option("--result", "FILE", split.result,
              "file for the merged result; without a merge, a folder")
      .required()
      .option(
          "--merge", "COMMAND", split.merge,
          "shell command that merges the parts' results, {parts} in order: 'cat {parts} > {out}' "
          "(the tool's own, else nothing is merged)")
      .option("--merge-at-once", "N", split.merge_at_once,
              "results that one merge takes; if there are more, merges are merged (100)");
  verb.app().get_option("--merge-at-once")->check(CLI::Range(2U, 1'000U));
  verb.option("--parts", "DIR", split.parts, "the folder of the parts' results (RESULT.parts)")
      .flag("--keep-parts", split.keep_parts, "leave them there");
}

}  // namespace

void add_split_verb(CLI::App& app, Command& into) {
  add_verb<SplitCommand>(
      app, into, "split",
      "cut a list of files into parts, run a task for each, and merge their results. In the "
      "command {files} are a part's files, {list} is a file that lists them, {reuse} what every "
      "part gets, {out} "
      "the file for its result. A part that is too large for its time, memory or disk is cut in "
      "two. The same command again continues where it stopped",
      "Examples:\n  hpcbatch split --inputs list.txt --files-per-task 20 --merge 'cat {parts} > "
      "{out}' \\\n    --result counts.txt -- sh -c 'out=$1; shift; wc -l \"$@\" > \"$out\"' sh "
      "{out} {files}\n"
      "  hpcbatch split --tool ina_speech_segmenter --recording tape.wav --pieces 24 --result "
      "tape.tsv",
      [](Verb& verb, SplitCommand& made) {
        add_work_options(verb, made.work);
        add_data_set(verb, made.split);
        add_result(verb, made.split);
        verb.group("Options").json(made.split.json);
      });
}

}  // namespace hpcbatch::detail
