#include "cli/parse/parse.hpp"

#include "cli/process/process.hpp"
#include "model/item.hpp"
#include "programs/program_words.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

namespace hpcbatch {
namespace {

constexpr const char* kOverview = R"(hpcbatch runs many small tasks inside few batch jobs.

Work
  run -- CMD          run one task, stream its output, exit as it exits
  submit -- CMD       queue a task, an array or a file of tasks; print the ids
  split -- CMD        cut a list of files into parts, and merge their results
  wait ID...          wait until tasks have ended
  cancel ID...        end tasks: TERM, after 5 s KILL
  hold, release ID... keep waiting tasks from starting, and let them start
  update ID...        change what waiting tasks ask for: --priority 10 --mem 8G
  signal ID...        send running tasks a signal: --signal USR1
  time-left           inside a task: seconds until it is asked to end
  node-run -- CMD     inside a task of several nodes: run CMD on each
  requeue ID...       end running tasks and run them again; costs no retry
  retry ID...         run failed or cancelled tasks again, e.g. with --mem 8G

Look
  list [ID]           what was submitted, newest first; or the tasks of one
  show ID             a task or submission in full
  log ID              what a task printed
  explain ID          why it waits, or how it failed
  top                 the live view
  web                 a page in your browser: live plots, tasks, sites
  metrics             metrics of the engine for Prometheus
  report              what tasks asked for and used, and what would save most
  waits [SHAPE]       how long allocations wait in the queues
  keep [SHAPE]        keep pilots of a shape running until a given time
  sim TRACE           how good forecasts of waits are on a cluster's past
  sites, allocations, pilots, tools [show NAME | check NAME]
  sites add NAME      write the configuration of a cluster for you
  sites clean NAME    remove old files from its workspace

Engine
  engine start, stop, reload, restart, status, run
  dropbox DIR         watch a folder for job files
  backup FILE         copy the store while the engine runs
  fsck                check the store; --salvage NEWFILE saves what can be read
  doctor              check this installation
  plugin new, check, list   write tools and schedulers in C++
  slurm-commands DIR, pbs-commands DIR   make sbatch or qsub that submit tasks
  snakemake-profile   print a profile for Snakemake
  completion SHELL, manual   for bash, zsh or fish, and for man

An id is 12, a task of an array is 12.345, a range is 12.1-99; last is your
newest submission.
`hpcbatch VERB --help` prints options and examples; `hpcbatch help task-file`
prints the keys of a file of tasks.
)";

/// What stands after `--` is the command, whatever it looks like.
std::vector<std::string> take_command(std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return {};
  std::vector<std::string> command(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return command;
}

/// What is behind the dashes is handed to a script, and what is before them may be read again.
void keep_words(Command& command, const std::vector<std::string>& before) {
  auto* submit = std::get_if<SubmitCommand>(&command);
  if (submit == nullptr || submit->script.empty()) return;
  submit->words = before;
  const auto script = std::find(submit->words.rbegin(), submit->words.rend(), submit->script);
  if (script != submit->words.rend()) submit->words.erase(std::next(script).base());
}

void set_command(Command& command, std::vector<std::string> words) {
  WorkOptions* work = nullptr;
  if (auto* run = std::get_if<RunCommand>(&command)) work = &run->work;
  if (auto* submit = std::get_if<SubmitCommand>(&command)) work = &submit->work;
  if (auto* split = std::get_if<SplitCommand>(&command)) work = &split->work;
  if (work != nullptr) work->command = std::move(words);
}

void check_work(const WorkOptions& work, const std::string& verb) {
  const bool has_tool = work.says("tool");
  if (!has_tool && work.says("parameters"))
    throw std::invalid_argument("--param belongs to --tool NAME");
  if (has_tool && !work.command.empty())
    throw std::invalid_argument("a task has a tool or a command, not both");
  if (const auto ways = work.said.find("one_of"); ways != work.said.end()) {
    if (ways->second.size() == 1 && ways->second.front().find(';') == std::string::npos)
      throw std::invalid_argument("one --one-of leaves no choice: say each way, the best first");
    for (const char* key : {"cpus", "gpus", "gpu_memory", "gpu_capability"}) {
      if (work.says(key))
        throw std::invalid_argument("cpus and GPUs stand in each --one-of, not beside it");
    }
  }
  if (!has_tool && work.command.empty()) {
    throw std::invalid_argument("there is no command; write it after `--`: hpcbatch " + verb +
                                " -- echo hello");
  }
}

/// All that was said was taken for items.
void check_no_command_is_an_item(const WorkOptions& work, const ManyOptions& many,
                                 const std::string& verb) {
  const auto& sources = many.items.sources;
  if (!work.command.empty() || work.says("tool") ||
      std::all_of(sources.begin(), sources.end(),
                  [](const auto& one) { return !one.file.empty(); }))
    return;
  throw std::invalid_argument(
      "there is no command: --items takes all words up to `--`, and the command stands behind it: "
      "hpcbatch " +
      verb + " --items A B -- COMMAND {}");
}

void check_items(const ItemOptions& items) {
  const auto inputs = std::count_if(items.sources.begin(), items.sources.end(),
                                    [](const ItemSource& source) { return source.file == "-"; });
  if (inputs > 1) throw std::invalid_argument("standard input can be read once: one `--each -`");
  if (items.sources.empty() && (!items.columns.empty() || items.header || items.link))
    throw std::invalid_argument("--columns, --header and --link belong to --each FILE or --items");
  if (items.link && items.sources.size() < 2)
    throw std::invalid_argument("--link pairs the items of several --each or --items");
}

void check_many(const ManyOptions& many) {
  check_items(many.items);
  if (!many.skip_done.empty() && many.items.sources.empty())
    throw std::invalid_argument("--skip-done leaves out items: it belongs to --each or --items");
  if ((many.halt || many.max_running != 0) && !is_many(many)) {
    throw std::invalid_argument(
        "--max-fails, --halt and --max-running belong to --each, --items or --array");
  }
}

bool says_many(const ManyOptions& many) {
  return is_many(many) || many.halt || many.max_running != 0 || !many.skip_done.empty() ||
         !many.items.columns.empty() || many.items.header || many.items.link;
}

void check_run(const RunCommand& run) {
  if (!is_many(run.many) &&
      (run.keep_order || run.prefix || run.resume || !run.joblog.empty() || !run.key.empty())) {
    throw std::invalid_argument(
        "--keep-order, --prefix, --joblog, --key and --resume belong to --each, --items or "
        "--array");
  }
  if (run.resume && run.key.empty())
    throw std::invalid_argument("--resume goes on with the work of a key: say --key KEY, too");
}

/// GNU parallel has items behind `:::`; that program itself may be run, of course.
void check_items_place(const WorkOptions& work, const ManyOptions& many, const std::string& verb) {
  const auto& command = work.command;
  const auto marks = std::find(command.begin(), command.end(), std::string_view(":::"));
  const bool has_place = std::any_of(command.begin(), marks, [](const std::string& word) {
    return word.find('{') != std::string::npos;
  });
  if (marks == command.end() || is_many(many) || !has_place) return;
  const bool is_parallel = std::any_of(command.begin(), marks, [](const std::string& word) {
    return word == "parallel" || word.ends_with("/parallel");
  });
  if (is_parallel) return;
  throw std::invalid_argument(
      "items stand before the command, behind --items in place of ':::': hpcbatch " + verb +
      " --items A B -- COMMAND {}");
}

bool names(const std::vector<std::string>& command, const char* place) {
  return std::any_of(command.begin(), command.end(), [place](const std::string& word) {
    return word.find(place) != std::string::npos;
  });
}

/// Names of files may hold anything; {list} and {out} are ours.
void check_no_file_is_run(const std::vector<std::string>& command) {
  std::vector<std::string> marked;
  std::vector<std::string> places(command.size());
  for (std::size_t at = 0; at < command.size(); ++at) {
    const auto mark = [&](std::string_view name, char form) -> std::optional<std::string> {
      if (name != "files" && name != "reuse") return std::nullopt;
      if (places[at].empty()) places[at] = name;
      return std::string(1, form);
    };
    marked.push_back(fill_braces(without_marks(command[at]), mark));
  }
  const auto text = misplaced_text(marked);
  if (!text) return;
  const std::string& name = places[text->word];
  throw std::invalid_argument(
      why_misplaced(*text, "{" + name + "}", "{" + name + ":q}", "{" + name + ":raw}"));
}

void check_places_of_parts(const SplitCommand& command) {
  const std::vector<std::string>& words = command.work.command;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto stray =
        stray_places(words[at], {}, {"files", "reuse", "list", "out"}, Doubled::AsTheyStand);
    if (!stray.empty() && !is_code_of_no_shell(words, at))
      throw std::invalid_argument("'" + std::string(stray.front()) +
                                  "' stands for nothing: a part has {files}, {list}, {reuse} and "
                                  "{out}; a text that is meant as it stands belongs into a script");
  }
}

void check_split(const SplitCommand& command) {
  const SplitOptions& split = command.split;
  check_work(command.work, "split");
  const bool is_tool = command.work.says("tool");
  if (split.inputs.empty() == split.recording.empty())
    throw std::invalid_argument("say what is split: --inputs FILE, or --recording FILE of a tool");
  if (command.work.says("outputs"))
    throw std::invalid_argument("parts have one output each, {out}; the whole's is --result FILE");
  if (!split.recording.empty() && !is_tool)
    throw std::invalid_argument("a recording is cut by a tool's means: say --tool NAME, too");
  if (!split.recording.empty() && (split.pieces == 0) == split.piece_length.empty())
    throw std::invalid_argument("say --pieces N or --piece-length DURATION");
  if (split.recording.empty() && (split.pieces != 0 || !split.piece_length.empty()))
    throw std::invalid_argument("--pieces and --piece-length belong to --recording FILE");
  check_no_file_is_run(command.work.command);
  check_places_of_parts(command);
  if (!is_tool && !names(command.work.command, "{files") && !names(command.work.command, "{list}"))
    throw std::invalid_argument(
        "the command names no part: write {files}, or {list} for a file that lists them");
  if (!is_tool && !names(command.work.command, "{out}"))
    throw std::invalid_argument("the command has no {out}: the file in which it leaves its result");
  if (!split.merge.empty() && (!names({split.merge}, "{parts}") || !names({split.merge}, "{out}")))
    throw std::invalid_argument("--merge needs {parts} and {out}, as 'cat {parts} > {out}'");
}

void check_command(const Command& command) {
  if (const auto* run = std::get_if<RunCommand>(&command)) {
    check_many(run->many);
    check_run(*run);
    check_items_place(run->work, run->many, "run");
    check_no_command_is_an_item(run->work, run->many, "run");
    check_work(run->work, "run");
  }
  if (const auto* split = std::get_if<SplitCommand>(&command)) check_split(*split);
  const auto* submit = std::get_if<SubmitCommand>(&command);
  if (submit == nullptr) return;
  if (!submit->script.empty()) {
    if (!submit->file.empty() || submit->work.says("tool"))
      throw std::invalid_argument("a script says what is run: leave out --file and --tool");
  } else if (submit->file.empty()) {
    check_many(submit->many);
    check_items_place(submit->work, submit->many, "submit");
    check_no_command_is_an_item(submit->work, submit->many, "submit");
    check_work(submit->work, "submit");
  } else if (says_many(submit->many) || submit->work.says("tool") ||
             !submit->work.command.empty()) {
    throw std::invalid_argument(
        "--file says what its tasks run: leave out the command, --tool, --array, --each and what "
        "goes with them, as --skip-done; `hpcbatch retry ID` runs again what did not end well");
  }
}

/// `words` with a mark before each value of --items that begins as an option does and is none of the
/// verb's: `-5`, `-n 5` in quotes, `--items=-x`.
std::vector<std::string> with_items_marked(const CLI::App& verb,
                                           const std::vector<std::string>& words) {
  constexpr std::string_view kWithValue = "--items=";
  if (verb.get_option_no_throw("--items") == nullptr) return words;
  std::vector<std::string> marked;
  bool are_items = false;
  const auto mark = [&](std::string_view word) {
    marked.push_back(detail::kItemMark + std::string(word));
  };
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto at = words.begin(); at != end; ++at) {
    const std::string& word = *at;
    if (word.starts_with(kWithValue)) {
      marked.emplace_back("--items");
      mark(std::string_view(word).substr(kWithValue.size()));
      are_items = true;
    } else if (are_items &&
               (word.starts_with(detail::kItemMark) ||
                (word.size() > 1 && word[0] == '-' && !is_meant_as_option(verb, word)))) {
      mark(word);
    } else {
      are_items = word == "--items" || (are_items && !word.starts_with('-'));
      marked.push_back(word);
    }
  }
  marked.insert(marked.end(), end, words.end());
  return marked;
}

void check_verb(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) known.push_back(verb->get_name());
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw CommandError(kExitUsage, complaint_of_verb(word, known));
}

void add_reference_verbs(CLI::App& app, Command& into) {
  CLI::App* completion =
      app.add_subcommand("completion", "print what a shell reads to complete our words");
  auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "of which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer("Example:\n  echo 'source <(hpcbatch completion bash)' >> ~/.bashrc");
  completion->callback([&into, shell] { into = ShowText{completion_for(*shell)}; });
  CLI::App* manual = app.add_subcommand("manual", "print the manual page");
  manual->footer("Example:\n  hpcbatch manual | man -l -");
  manual->callback([&app, &into] { into = ShowText{manual_page(app, kOverview)}; });
}

/// An option with nothing behind it is mostly a variable that is not set, and never meant as if
/// nothing had been said.
void refuse_empty_values(CLI::App& verb) {
  const CLI::Validator something(
      [](const std::string& text) {
        return std::string(text.empty() ? "an empty value; leave the option out where none is meant"
                                        : "");
      },
      "");
  for (CLI::Option* option : verb.get_options()) {
    // Of items an empty one is one.
    if (option->nonpositional() && option->get_items_expected_max() > 0 &&
        !option->check_lname("items"))
      option->check(something);
  }
  for (CLI::App* inner : verb.get_subcommands([](CLI::App*) { return true; }))
    refuse_empty_values(*inner);
}

}  // namespace

namespace detail {

std::string whole_path(const std::string& path) {
  if (path.empty()) throw std::invalid_argument("an empty text is not a path");
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error)
    throw std::invalid_argument("cannot tell the current directory: " + error.message() +
                                "; change to one that exists");
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

Verb& Verb::group(const char* name) {
  app_.option_defaults()->group(name);
  return *this;
}

Verb& Verb::flag(const std::string& names, bool& into, const std::string& says) {
  return is(app_.add_flag(names, into, says));
}

Verb& Verb::read(const std::string& names, const std::string& type,
                 const std::function<void(const std::string&)>& store, const std::string& says) {
  const auto guarded = [names, store](const std::string& text) {
    try {
      store(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(names, error.what());
    }
  };
  return is(app_.add_option_function<std::string>(names, guarded, says)->type_name(type));
}

Verb& Verb::read_each(const std::string& names, const std::string& type,
                      const std::function<void(const std::string&)>& store,
                      const std::string& says) {
  const auto guarded = [names, store](const std::vector<std::string>& texts) {
    try {
      for (const std::string& text : texts) store(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(names, error.what());
    }
  };
  return is(app_.add_option_function<std::vector<std::string>>(names, guarded, says)
                ->allow_extra_args(false)
                ->type_name(type));
}

/// The library's own prints the largest number that there is.
Verb& Verb::check_count(std::int64_t most) {
  last_->check(CLI::Validator(
      [most](const std::string& text) {
        const bool is_number =
            !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        const bool is_above = is_number && text.find_first_not_of('0') != std::string::npos;
        const auto number = number_in<std::int64_t>(text);
        if (is_above && number && *number <= most) return std::string();
        return is_above ? fmt::format("'{}' is above {}", text, most)
                        : fmt::format("'{}' is no number from 1 up", text);
      },
      ""));
  return *this;
}

Verb& Verb::required() {
  last_->required();
  return *this;
}

Verb& Verb::excludes(const char* other) {
  last_->excludes(app_.get_option(other));
  return *this;
}

Verb& Verb::hidden() {
  last_->group("");
  return *this;
}

}  // namespace detail

Command parse_command(const std::vector<std::string>& typed) {
  if (typed.empty() || typed[0] == "--help" || typed[0] == "-h") return ShowText{kOverview};
  std::vector<std::string> words = typed;
  if (words[0] == "help") {
    if (words.size() == 1) return ShowText{kOverview};
    if (words[1] == "task-file") return ShowText{task_file_help()};
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words[0] == "--version") return ShowVersion{};

  Command command = ShowText{kOverview};
  CLI::App app("", "hpcbatch");
  app.formatter(std::make_shared<HelpText>());
  app.set_help_flag("-h,--help", "this text");
  app.require_subcommand(1);
  detail::add_work_verbs(app, command);
  detail::add_split_verb(app, command);
  detail::add_task_verbs(app, command);
  detail::add_inventory_verbs(app, command);
  detail::add_engine_verbs(app, command);
  detail::add_foresight_verbs(app, command);
  detail::add_plugin_verbs(app, command);
  detail::add_snakemake_verbs(app, command);
  add_reference_verbs(app, command);
  // What the scripts of the shells ask.
  if (const std::size_t at = 2;
      words.size() > at && words[0] == "completion" && words[1] == "words" && words[at] == "--")
    return ShowText{offers_after(app, {words.begin() + at + 1, words.end()})};
  check_verb(app, words[0]);
  refuse_empty_values(app);

  const CLI::App& verb = *app.get_subcommand(words[0]);
  std::vector<std::string> plain = words;
  words = with_items_marked(verb, words);
  std::vector<std::string> left = words;
  std::vector<std::string> after_dashes;
  if (words[0] == "run" || words[0] == "submit" || words[0] == "split") {
    take_command(plain);
    after_dashes = take_command(left);
  }

  const int wrong = words[0] == "run" ? kExitOwnFailure : kExitUsage;
  try {
    if (const auto why = complaint_of_missing_value(verb, left)) throw std::invalid_argument(*why);
    std::vector<std::string> reversed(left.rbegin(), left.rend());  // as CLI11 wants them
    app.parse(reversed);
    keep_words(command, plain);
    set_command(command, std::move(after_dashes));
    check_command(command);
  } catch (const CLI::CallForHelp&) {
    return ShowText{app.help()};
  } catch (const CLI::ParseError& error) {
    throw CommandError(wrong, with_pointer(complaint_of(app, error, words), words[0]));
  } catch (const std::invalid_argument& error) {
    throw CommandError(wrong, with_pointer(error.what(), words[0]));
  }
  return command;
}

}  // namespace hpcbatch
