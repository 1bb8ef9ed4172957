// The verbs that hand in work, and the needs that they share.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"
#include "hardware/cpu_binding.hpp"
#include "model/site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/Validators.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <tuple>
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

/// sbatch(1), --export.
void read_export(const std::string& text, WorkOptions& work) {
  std::vector<std::string> names;
  bool has_all = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    at = end + 1;
    if (one.empty() || one.front() == '=')
      throw std::invalid_argument("'" + text + "' is no list; write ALL, NONE, or as ALL,NAME,A=1");
    if (one == "ALL") {
      has_all = true;
    } else if (one.find('=') != std::string::npos) {
      work.env.push_back(parse_assignment(one, "--export"));
    } else if (one != "NONE") {
      names.push_back(one);
    }
  }
  if (!has_all) work.exported = std::move(names);
}

std::string one_of(const std::string& text, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), text) != known.end()) return text;
  throw std::invalid_argument(fmt::format("'{}' is none of {}{}", text, fmt::join(known, ", "),
                                          spelling_hint(text, known)));
}

// NOLINTNEXTLINE(readability-function-size)
void add_resources(CLI::App& verb, WorkOptions& work) {
  verb.option_defaults()->group("Needs");
  add_value(
      verb, "--cpus", "N",
      [&work](const std::string& t) {
        work.all_cpus = t == "all";
        work.cpus = work.all_cpus ? std::nullopt : std::optional(parse_cpus(t));
      },
      "processors; a half is 0.5; all: those of a node (1)");
  add_value(
      verb, "--mem", "SIZE",
      [&work](const std::string& t) { work.memory = t == "all" ? t : checked_size(t); },
      "memory, a limit too: bytes, or as 500M, 8G; all: that of a node (its cpus' share of a "
      "node)");
  add_value(
      verb, "--disk", "SIZE", [&work](const std::string& t) { work.disk = checked_size(t); },
      "scratch space: bytes, or as 10G (none)");
  add_values(
      verb, "--gpus", "N|KIND:N", [&work](const std::string& t) { add_gpus(t, work); },
      "GPUs of any kind, or by kind, as a100:2, or of either, as 'a100|h100:2'; a part of one as "
      "0.25 (none)");
  add_value(
      verb, "--gpu-memory", "SIZE",
      [&work](const std::string& t) { work.gpu_memory = checked_size(t); },
      "only kinds of GPU with so much memory, as 40G (any; 1 GPU where --gpus is not said)");
  add_value(
      verb, "--gpu-capability", "N.N",
      [&work](const std::string& t) { work.gpu_capability = checked_capability(t); },
      "only kinds of GPU with this compute capability or a newer one, as 8.0 (any)");
  add_values(
      verb, "--one-of", "NEEDS",
      [&work](const std::string& t) { work.one_of.push_back(parse_way(t)); },
      "any of these would do, the best first, in place of --cpus and --gpus: --one-of "
      "gpus=1,cpus=4 "
      "--one-of cpus=16; of cpus, mem, disk, gpus, gpu-memory, gpu-capability (no choice)");
  add_value(
      verb, "--time", "DURATION",
      [&work](const std::string& t) { work.time = checked_duration(t); },
      "need and limit: seconds, or as 90s, 1h30m (none)");
  add_value(
      verb, "--cpu-bind", "WORD",
      [&work](const std::string& t) {
        work.cpu_bind = one_of(t, {kCpuBindWords.begin(), kCpuBindWords.end()});
      },
      "which of a node's cpus it is bound to: compact (close together), scatter, numa (one node of "
      "memory, or later), none; near its GPU where it has one (compact)");
  add_value(
      verb, "--threads-per-core", "N",
      [&work](const std::string& t) {
        work.threads_per_core = static_cast<std::uint32_t>(parse_whole(t, 1, 8));
      },
      "use at most so many threads of each core; the others stay idle meanwhile (all)");
  add_value(
      verb, "--estimate", "WORD",
      [&work](const std::string& t) {
        work.estimate = one_of(t, {"off", "advise", "use"});
      },
      "what runs of its kind used before: off, advise (say it) or use (need that, where less or "
      "nothing is said) (the site's)");
  verb.add_option("--site", work.site, "only there")->type_name("NAME");
  add_values(
      verb, "--not-site", "NAME", [&work](const std::string& t) { work.not_sites.push_back(t); },
      "never there; may be repeated");
  add_values(
      verb, "--tag", "TAG", [&work](const std::string& t) { work.tags.push_back(t); },
      "only where shapes have this tag; may be repeated");
  for (const auto& [option, key, what] :
       {std::tuple{"--partition", "partition", "only in this partition, or in one of A,B"},
        std::tuple{"--account", "account", "in batch jobs of this account"},
        std::tuple{"--qos", "qos", "in batch jobs of this quality of service"},
        std::tuple{"--reservation", "reservation", "in batch jobs of this reservation"},
        std::tuple{"--constraint", "constraint", "on nodes that have this"}}) {
    add_value(
        verb, option, "NAME",
        [&work, key = std::string(key)](const std::string& t) {
          work.tags.push_back(fmt::format("{}={}", key, t));
        },
        what);
  }
  add_value(
      verb, "--nodes", "N",
      [](const std::string& t) {
        if (t != "1")
          throw std::invalid_argument(
              "one task over several nodes is not built yet; only --nodes 1 is");
      },
      "nodes of one task; only 1 so far");
}

void add_surroundings(CLI::App& verb, WorkOptions& work) {
  verb.option_defaults()->group("Surroundings");
  add_values(
      verb, "--env", "NAME[=VALUE]",
      [&work](const std::string& t) { work.env.push_back(parse_env(t)); },
      "set this variable; may be repeated");
  add_value(
      verb, "--export", "LIST", [&work](const std::string& t) { read_export(t, work); },
      "of your variables: ALL, NONE (HOME, PATH, LANG and the like alone), or NAME and NAME=VALUE, "
      "parted by commas, with ALL among them beside all (ALL)");
  verb.add_option("--cwd", work.directory, "directory to run in (the current one)")
      ->type_name("DIR");
  verb.add_option("--stdin", work.standard_input, "standard input (none)")->type_name("FILE");
  verb.add_option("--stdout", work.standard_output,
                  "standard output to this file (kept for `log`), or nowhere (none); of many tasks "
                  "with {index}, {id} or, for the item, {} in it")
      ->type_name("FILE");
  verb.add_option("--stderr", work.standard_error,
                  "standard error to this file (kept for `log`), or nowhere (none)")
      ->type_name("FILE");
  add_value(
      verb, "--output-limit", "SIZE|none",
      [&work](const std::string& t) { work.output_limit = t == "none" ? t : checked_size(t); },
      "of output that goes to no file, keep so much of each stream's beginning, and its end (1G or "
      "as the site says; `run`: all)");
  verb.add_option("--container", work.container, "run in this image")->type_name("IMAGE");
}

void add_course(CLI::App& verb, WorkOptions& work) {
  verb.option_defaults()->group("Course");
  verb.add_option("--name", work.name, "a name to show")->type_name("NAME");
  verb.add_option("--kind", work.kind,
                  "what kind of task it is, for `report` (the tool, the name, the program)")
      ->type_name("NAME");
  add_value(
      verb, "--retries", "N",
      [&work](const std::string& t) {
        work.retries = static_cast<std::uint32_t>(parse_whole(t, 0, 1000));
      },
      "how often a failure that is the task's own is tried again, up to 1000 (0)");
  add_value(
      verb, "--priority", "N",
      [&work](const std::string& t) {
        work.priority = static_cast<std::int32_t>(parse_whole(t, -1'000'000, 1'000'000));
      },
      "higher starts earlier, -1000000 to 1000000 (0)");
  const auto list_of = [](std::vector<std::string>& ids) {
    return [&ids](const std::string& text) { ids.push_back(checked_id(text)); };
  };
  add_values(verb, "--after", "ID", list_of(work.after), "start when these have succeeded");
  add_values(verb, "--after-any", "ID", list_of(work.after_any), "start when these have ended");
}

void add_tool(CLI::App& verb, WorkOptions& work) {
  verb.option_defaults()->group("Tool");
  const auto map_of = [](Assignments& into, const char* flag) {
    return [&into, flag](const std::string& text) { into.push_back(parse_assignment(text, flag)); };
  };
  verb.add_option("--tool", work.tool, "run this tool instead of a command")->type_name("NAME");
  add_values(verb, "--param", "K=V", map_of(work.parameters, "--param"), "a parameter of it");
  verb.option_defaults()->group("Files");
  add_values(verb, "--input", "NAME=PATH", map_of(work.inputs, "--input"),
             "an input of the tool (the same name again makes a list), or a file that the command "
             "finds as NAME in a directory of its own");
  add_values(verb, "--output", "NAME=PATH", map_of(work.outputs, "--output"),
             "where an output of the tool goes, or the file NAME that the command leaves in its "
             "directory");
}

/// GNU parallel's: here items are an option.
constexpr std::string_view kBeforeItems = ":::";

void add_items(CLI::App& verb, ItemOptions& items) {
  // Those with the items in the order in which they come.
  add_values(
      verb, "--each", "FILE",
      [&items](const std::string& file) {
        items.sources.push_back({file, {}});
      },
      "one task for each line; - is standard input. In the command, in paths and in the name {} is "
      "the line, {/} its name without the folder, {//} the folder, {.} without the ending, {/.} "
      "the "
      "name without it, {#} its number; empty lines do not count. Of JSON lines {NAME} is a field. "
      "Several give all "
      "combinations, whose parts are {1}, {2}, {2/} and so on")
      ->trigger_on_parse();
  verb.add_option_function<std::vector<std::string>>(
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
  verb.add_flag("-0,--null", items.null,
                "what --each reads has a zero byte behind each item, as find -print0 writes it")
      ->needs("--each");
  verb.add_option("--columns", items.columns,
                  "a line has several items, {1}, {2} and so on, between these: a text, tab, or "
                  "space for any blanks")
      ->type_name("SEPARATOR");
  verb.add_flag("--header", items.header, "the first line has names for the columns: {NAME}");
  verb.add_flag("--link", items.link,
                "of several lists the first of each, then the second of each, and so on");
}

void add_many(CLI::App& verb, ManyOptions& many) {
  verb.option_defaults()->group("Many");
  add_value(
      verb, "--array", "RANGE",
      [&many](const std::string& text) { many.array = parse_array(text); },
      "one task for each index, as 1-100, 1-100:2 (each second) or 1-100%8 (at most 8 at once), "
      "which it finds in HPCBATCH_TASK_INDEX; from 0 as well (0-9), where ids still count from 1. "
      "With --each or --items: only the items of these "
      "numbers");
  add_items(verb, many.items);
  add_values(
      verb, "--skip-done", "ID",
      [&many](const std::string& text) { many.skip_done.push_back(checked_id(text)); },
      "leave out the items that ended well in that submission, or in those that it had left out "
      "itself: after a list was mended, only what is new or failed is run; the others keep their "
      "numbers; may be repeated");
  verb.add_option("--max-running", many.max_running, "at most so many at once (no bound)")
      ->type_name("N")
      ->check(above_zero());
  CLI::Option* fails = add_value(
      verb, "--max-fails", "N",
      [&many](const std::string& text) { many.halt = parse_max_fails(text); },
      "with more failures, what has not started is cancelled (no bound); those that run by then "
      "may "
      "fail too");
  add_value(
      verb, "--halt", "WHEN,fail=N[%]",
      [&many](const std::string& text) { many.halt = parse_halt(text); },
      "with so many failures, or of so many percent, begin no more (soon), or end what runs too "
      "(now); never")
      ->excludes(fails);
}

void add_run(CLI::App& app, Command& into) {
  // The verbs' values live as long as the callbacks that fill them.
  auto run = std::make_shared<RunCommand>();
  CLI::App* verb = app.add_subcommand(
      "run",
      "run one task, stream its output, exit as it exits (125: hpcbatch failed); or many, and exit "
      "with 0 where all succeeded, else 1");
  add_work_options(*verb, run->work);
  add_many(*verb, run->many);
  verb->add_flag("--keep-order", run->keep_order,
                 "print what they print in the order of the items, not as they end");
  verb->add_flag("--prefix", run->prefix, "begin each line that they print with its task's id");
  verb->add_option("--joblog", run->joblog,
                   "a line for each task that has ended, as GNU parallel writes them")
      ->type_name("FILE");
  verb->add_option("--key", run->key, "a name of yours for this work, for --resume")
      ->type_name("KEY");
  verb->add_flag("--resume", run->resume,
                 "of work that was begun under this key, run what has not ended well");
  verb->footer(
      "Examples:\n  hpcbatch run --cpus 4 --mem 8G --time 1h -- sort big.txt\n"
      "  hpcbatch run --items *.wav -- ffmpeg -i {} {.}.mp3");
  verb->callback([run, &into] { into = *run; });
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
  auto submit = std::make_shared<SubmitCommand>();
  CLI::App* verb = app.add_subcommand(
      "submit", "queue a command, a script, an array or a file of tasks, and print their ids");
  verb->add_option("SCRIPT", submit->script,
                   "a script with lines `#HPCBATCH --cpus 4` (or `#SBATCH`, where they mean the "
                   "same); what is behind `--` are its arguments")
      ->type_name("");
  add_work_options(*verb, submit->work);
  verb->option_defaults()->group("Course");
  verb->add_flag("--hold", submit->work.hold, "do not start before `hpcbatch release ID`");
  add_values(
      *verb, "--after-each", "ID",
      [submit](const std::string& text) { submit->work.after_each.push_back(checked_id(text)); },
      "pair equal indices of two arrays");
  verb->add_option("--key", submit->key, "the same key again gives the same ids")->type_name("KEY");
  add_many(*verb, submit->many);
  verb->add_option(
          "--file", submit->file,
          "tasks from a .yaml, .toml or .jsonl file, as `hpcbatch help task-file` says; - is "
          "JSON lines on standard input")
      ->type_name("FILE");
  verb->option_defaults()->group("Course");
  verb->add_flag("--dry-run", submit->dry_run,
                 "queue nothing; show what would run, and in which shapes (exit 2: in none)");
  verb->add_flag("--wait", submit->wait,
                 "wait until all have ended: exit 0 if all succeeded, else 1");
  verb->option_defaults()->group("Options");
  add_json_flag(*verb, submit->json);
  verb->footer(
      "Examples:\n  hpcbatch submit job.sh\n  hpcbatch submit --array 1-100%20 -- sh -c 'process "
      "part.$HPCBATCH_TASK_INDEX'\n"
      "  hpcbatch submit --items *.wav -- ffmpeg -i {} {.}.mp3\n"
      "  hpcbatch submit --each table.csv --columns , --header -- fit {sample} {lambda}");
  verb->callback([submit, &into] {
    check_script(*submit);
    into = *submit;
  });
}

}  // namespace

void add_work_options(CLI::App& verb, WorkOptions& work) {
  add_resources(verb, work);
  add_surroundings(verb, work);
  add_course(verb, work);
  add_tool(verb, work);
}

void add_work_verbs(CLI::App& app, Command& into) {
  add_run(app, into);
  add_submit(app, into);
}

// `split`: a data set as tasks of some files each, and one result.

namespace {

void add_data_set(CLI::App& verb, SplitOptions& split) {
  verb.option_defaults()->group("Data set");
  verb.add_option("--inputs", split.inputs, "the files, one path a line; - is standard input")
      ->type_name("FILE");
  verb.add_option("--files-per-task", split.files_per_task, "so many of them at most in a part (1)")
      ->type_name("N")
      ->check(above_zero());
  add_value(
      verb, "--bytes-per-task", "SIZE",
      [&split](const std::string& text) { split.bytes_per_task = checked_size(text); },
      "and so many bytes of them at most, but for one that is larger alone (no bound)");
  verb.add_option("--reuse", split.reuse, "files that every part gets too, one path a line (none)")
      ->type_name("FILE");
  verb.add_option("--recording", split.recording,
                  "a recording, which the tool cuts where it is silent")
      ->type_name("FILE");
  verb.add_option("--pieces", split.pieces, "into so many pieces")
      ->type_name("N")
      ->check(CLI::Range(1U, 10'000U));
  add_value(
      verb, "--piece-length", "DURATION",
      [&split](const std::string& text) { split.piece_length = checked_duration(text); },
      "into pieces of about that length");
}

void add_result(CLI::App& verb, SplitOptions& split) {
  verb.option_defaults()->group("Result");
  verb.add_option("--result", split.result, "where the merged result goes; of no merge, the folder")
      ->type_name("FILE")
      ->required();
  verb.add_option("--merge", split.merge,
                  "what a shell makes of the parts' results, {parts}, in their order: 'cat {parts} "
                  "> {out}' (a tool's own; else nothing is merged)")
      ->type_name("TEXT");
  verb.add_option("--merge-at-once", split.merge_at_once,
                  "results that one merge takes; of more, merges are merged (100)")
      ->type_name("N")
      ->check(CLI::Range(2U, 1'000U));
  verb.add_option("--parts", split.parts, "the folder of the parts' results (RESULT.parts)")
      ->type_name("DIR");
  verb.add_flag("--keep-parts", split.keep_parts, "leave them there");
}

}  // namespace

void add_split_verb(CLI::App& app, Command& into) {
  auto made = std::make_shared<SplitCommand>();
  CLI::App* verb = app.add_subcommand("split",
                                      "run a data set as parts of some files each, and merge what "
                                      "they give. In the command {files} "
                                      "are a part's files, {list} is a file that lists them, "
                                      "{reuse} what every part gets, {out} the "
                                      "file for its result. A part that is too large for its time, "
                                      "memory or disk is cut in two. The "
                                      "same command again goes on where it was");
  add_work_options(*verb, made->work);
  add_data_set(*verb, made->split);
  add_result(*verb, made->split);
  verb->option_defaults()->group("Options");
  add_json_flag(*verb, made->split.json);
  verb->footer(
      "Examples:\n  hpcbatch split --inputs list.txt --files-per-task 20 --merge 'cat {parts} > "
      "{out}' \\\n    --result counts.txt -- sh -c 'out=$1; shift; wc -l \"$@\" > \"$out\"' sh "
      "{out} {files}\n"
      "  hpcbatch split --tool ina_speech_segmenter --recording tape.wav --pieces 24 --result "
      "tape.tsv");
  verb->callback([made, &into] { into = *made; });
}

}  // namespace hpcbatch::detail
