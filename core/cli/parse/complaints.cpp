#include "cli/parse/parse.hpp"

#include "documents/texts.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

/// What other programs of the field call our options (sbatch, qsub, hq, parallel, snakemake).
constexpr std::array kOptionsElsewhere{
    NamedElsewhere{"--tail", "-n --lines"},
    NamedElsewhere{"--name", "-n -N -J --job-name"},
    NamedElsewhere{"--cpus", "-c --cpus-per-task --cores --threads --ncpus"},
    NamedElsewhere{"--mem", "-m --memory --ram --mem-mb"},
    NamedElsewhere{"--disk", "--tmp"},
    NamedElsewhere{"--time", "-t --walltime --time-limit --runtime --timeout"},
    NamedElsewhere{"--gpus", "-G --gres --gpu"},
    NamedElsewhere{"--items", ":::"},
    NamedElsewhere{"--each", "-a --each-line --arg-file --from-json"},
    NamedElsewhere{"--max-running", "-j --jobs"},
    NamedElsewhere{"--keep-order", "-k"},
    NamedElsewhere{"--columns", "--colsep"},
    NamedElsewhere{"--stdout", "-o --out"},
    NamedElsewhere{"--stderr", "-e --err --error"},
    NamedElsewhere{"--stdin", "-i"},
    NamedElsewhere{"--partition", "-p --queue"},
    NamedElsewhere{"--qos", "-q"},
    NamedElsewhere{"--account", "-A"},
    NamedElsewhere{"--constraint", "-C"},
    NamedElsewhere{"--after", "-d --dependency --depends"},
    NamedElsewhere{"--cwd", "-D --chdir --workdir --dir"},
    NamedElsewhere{"--wait", "-w"},
    NamedElsewhere{"--retries", "--retry --crash-limit"},
    NamedElsewhere{"--max-fails", "--max-failures"},
    NamedElsewhere{"--prefix", "--tag-string"},
    NamedElsewhere{"--now", "--force --kill"},
    NamedElsewhere{"--limit", "-l --last"},
    NamedElsewhere{"--state", "-s --status"},
    NamedElsewhere{"--state failed", "--failed --failures --errors"},
    NamedElsewhere{"--state running", "--running"},
    NamedElsewhere{"--state done", "--done --completed"},
    NamedElsewhere{"--client", "-u --user"},
    NamedElsewhere{"--array", "-a"},
};

/// What other programs have an option for, and we something else.
struct SaidOtherwise {
  std::string_view verbs, flags, sentence;  ///< of these verbs; without '; ' before it
};
constexpr std::string_view kManyProcesses =
    "a task's cpus are --cpus N, its nodes --nodes N, the processes of MPI on them --ntasks N, and "
    "N "
    "tasks are --array 1-N";
constexpr std::array kSaidOtherwise{
    SaidOtherwise{" run submit split ", " --np -np ", kManyProcesses},
    SaidOtherwise{" run ", " --bar --eta --progress ",
                  "`run` shows how far it is by itself where standard error is a terminal; "
                  "elsewhere, `hpcbatch top` and `hpcbatch list` do"},
    SaidOtherwise{
        " submit ", " --bar --eta --progress ",
        "with --wait it shows how far it is by itself where standard error is a terminal; "
        "elsewhere, `hpcbatch top` and `hpcbatch list` do"},
    SaidOtherwise{" run submit ", " --delay ",
                  "tasks start when there is room for them; --max-running N bounds how many run at "
                  "once"},
    SaidOtherwise{
        " run ", " --dry-run --dryrun ",
        "`hpcbatch submit --dry-run` shows what would run, with the same words behind it"},
    SaidOtherwise{
        " cancel hold release ", " --all -a ",
        "it takes ids, as `hpcbatch list` shows them, ranges of them, as 12-15, or --name "
        "NAME; `hpcbatch engine stop --now` cancels all there is"}};

std::string_view said_otherwise(const CLI::App& verb, const std::string& flag) {
  for (const SaidOtherwise& one : kSaidOtherwise) {
    if (one.verbs.find(" " + verb.get_name() + " ") != std::string_view::npos &&
        one.flags.find(" " + flag + " ") != std::string_view::npos)
      return one.sentence;
  }
  return {};
}

constexpr std::array kVerbsElsewhere{
    NamedElsewhere{"list", "ls ps jobs job task tasks queue squeue qstat history stat"},
    NamedElsewhere{"cancel", "kill rm del delete scancel qdel abort"},
    NamedElsewhere{"submit", "sbatch qsub add"},
    NamedElsewhere{"run", "srun exec"},
    NamedElsewhere{"log", "cat logs output tail"},
    NamedElsewhere{"show", "info inspect describe"},
    NamedElsewhere{"explain", "why"},
    NamedElsewhere{"retry", "resubmit rerun"},
    NamedElsewhere{"update", "alter modify set change qalter"},
    NamedElsewhere{"hold", "pause suspend"},
    NamedElsewhere{"release", "resume unhold"},
    NamedElsewhere{"engine status", "status"},
    NamedElsewhere{"engine start", "start"},
    NamedElsewhere{"engine stop", "stop"},
    NamedElsewhere{"engine", "server daemon"},
    NamedElsewhere{"pilots", "worker workers"},
    NamedElsewhere{"allocations", "alloc"},
    NamedElsewhere{"sites", "site"},
    NamedElsewhere{"tools", "tool"},
    NamedElsewhere{"doctor", "check"},
    NamedElsewhere{"plugin", "plugins"},
    NamedElsewhere{"top", "dashboard watch"},
    NamedElsewhere{"report", "sacct seff efficiency usage stats"},
    NamedElsewhere{"--version", "version"},
};

const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().back();
  return *verb;
}

/// `sites check`.
std::string full_name(const CLI::App& verb) {
  const CLI::App* parent = verb.get_parent();
  if (parent == nullptr || parent->get_parent() == nullptr) return verb.get_name();
  return full_name(*parent) + " " + verb.get_name();
}

std::vector<std::string> flags_of(const CLI::App& verb) {
  std::vector<std::string> known;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return known;
}

bool has_flag(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string meant_by(const std::string& flag, const CLI::App& verb) {
  const std::vector<std::string> known = flags_of(verb);
  // `-c4` is `-c 4`.
  const std::string_view word =
      flag.size() > 2 && flag[1] != '-' ? std::string_view(flag).substr(0, 2) : flag;
  std::string meant = meant_elsewhere(kOptionsElsewhere, word, [&](std::string_view ours) {
    return has_flag(known, ours.substr(0, ours.find(' ')));
  });
  if (!meant.empty()) return meant;
  return flag.starts_with("--") ? nearest_spelling(flag, known) : std::string();
}

bool is_count(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

/// `-n 4` and `-N 2` are tasks and nodes to sbatch, and a name's option nowhere with a number.
std::string_view of_many_processes(const std::string& word, const std::string& next,
                                   const CLI::App& verb) {
  const bool is_one = word.starts_with("-n") || word.starts_with("-N");
  if (!is_one || !said_otherwise(verb, "--np").size()) return {};
  return is_count(word.substr(2)) || (word.size() == 2 && is_count(next)) ? kManyProcesses
                                                                          : std::string_view{};
}

/// `next` is the word behind it, if any.
std::string of_flag(const std::string& word, const std::string& next, const CLI::App& verb) {
  const std::string flag = word.substr(0, word.find('='));
  std::string_view otherwise = said_otherwise(verb, flag);
  if (otherwise.empty()) otherwise = of_many_processes(word, next, verb);
  if (!otherwise.empty())
    return "'" + show_text(flag) + "' is no option of " + full_name(verb) + ": " +
           std::string(otherwise);
  const bool is_sbatch = full_name(verb) == "submit";
  if (is_sbatch && flag == "--wrap")
    return "'--wrap' is no option of submit; a line for a shell is: hpcbatch submit -- sh -c "
           "'LINE'";
  const std::string meant = is_sbatch && flag == "-a" ? "--array" : meant_by(flag, verb);
  return "'" + show_text(flag) + "' is no option of " + full_name(verb) +
         (meant.empty() ? "" : "; did you mean " + meant + "?");
}

std::string as_typed(const std::vector<std::string>& words) {
  return joined(words, " ", [](std::string_view word) {
    return show_text(word.substr(word.starts_with(detail::kItemMark) ? 1 : 0));
  });
}

std::vector<std::string> inner_verbs(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* inner : verb.get_subcommands(nullptr)) names.push_back(inner->get_name());
  return names;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word != "--";
}

/// A flag that the verb does not have: what stands behind it was taken for something else.
std::optional<std::string> of_unknown_flag(const CLI::App& app,
                                           const std::vector<std::string>& words) {
  const CLI::App* verb = &app;
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != end; ++word) {
    if (!is_flag(*word)) {
      for (const CLI::App* inner : verb->get_subcommands(nullptr)) {
        if (inner->get_name() == *word) verb = inner;
      }
      continue;
    }
    const std::string flag = word->substr(0, word->find('='));
    if (verb->get_option_no_throw(flag) == nullptr) {
      const bool has_next = word + 1 != end;
      return of_flag(*word, has_next ? *(word + 1) : "", *verb);
    }
  }
  return std::nullopt;
}

/// A line that nobody reads is no help.
constexpr std::size_t kLongestProposal = 200;

/// Where the command begins: behind the options and what belongs to them.
std::vector<std::string>::const_iterator command_in(const CLI::App& verb,
                                                    const std::vector<std::string>& words) {
  auto word = words.begin() + 1;
  const auto end = std::find(words.begin(), words.end(), "--");
  while (word != end && word->starts_with('-')) {
    const CLI::Option* option = verb.get_option_no_throw(word->substr(0, word->find('=')));
    const bool takes_next = option != nullptr && option->get_items_expected_max() > 0 &&
                            word->find('=') == std::string::npos;
    word += takes_next && word + 1 != end ? 2 : 1;
  }
  return word;
}

bool is_called_as_a_script(const std::string& word) {
  for (const char* ending : {".sh", ".bash", ".slurm", ".sbatch", ".job", ".pbs"}) {
    if (word.ends_with(ending)) return true;
  }
  return false;
}

std::string of_command_without_dashes(const CLI::App& verb, const std::vector<std::string>& words) {
  const std::string begin = "a command stands behind `--`: hpcbatch " + verb.get_name();
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto command = command_in(verb, words);
  const auto items = std::find(command, end, ":::");
  std::vector<std::string> meant(words.begin() + 1, command);
  if (items != end) meant.insert(meant.end(), {"--items", "..."});
  meant.emplace_back("--");
  meant.insert(meant.end(), command, items);
  std::string line = as_typed(meant);
  if (verb.get_name() == "submit" && command != items && is_called_as_a_script(*command)) {
    std::vector<std::string> script(words.begin() + 1, command + 1);
    script.emplace_back("--");
    script.insert(script.end(), command + 1, items);
    line +=
        " (or, with what a batch script asks for itself: hpcbatch submit " + as_typed(script) + ")";
  }
  return begin + " " +
         (line.size() <= kLongestProposal ? line : line.substr(0, kLongestProposal) + "...");
}

/// Words that stand where nothing was expected.
std::string of_extras(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& verb = innermost(app);
  const std::vector<std::string> extras = app.remaining(true);
  const std::string name = full_name(verb);
  const std::string first = extras.empty() ? words.back() : extras.front();
  if (name == "run" || name == "submit" || name == "split")
    return of_command_without_dashes(verb, words);
  if (const std::vector<std::string> inner = inner_verbs(verb); !inner.empty()) {
    if (name == "allocations")
      return "there is no '" + name + " " + show_text(first) +
             "': the engine asks for allocations when there is work; `hpcbatch keep SHAPE --until "
             "TIME` keeps a pilot running";
    const std::string near = nearest_spelling(first, inner);
    return "there is no '" + name + " " + show_text(first) + "'" +
           (near.empty() ? fmt::format("; there are {}", fmt::join(inner, ", "))
                         : "; did you mean '" + near + "'?");
  }
  const auto options = verb.get_options();
  const bool takes_one = std::any_of(options.begin(), options.end(),
                                     [](const CLI::Option* o) { return o->get_positional(); });
  if (takes_one) return name + " takes one at a time; leave out '" + show_text(first) + "'";
  return name + " takes no '" + show_text(first) + "'";
}

std::string of_missing(const CLI::App& verb, const std::string& what) {
  const std::string name = full_name(verb);
  if (what == "A subcommand")
    return name + " does nothing alone; say " + joined(inner_verbs(verb), ", ");
  return what + " is missing: hpcbatch " + name + " " + what;
}

/// The option that the parser's sentence begins with, and what it says of its value.
std::pair<std::string, std::string> taken_apart(const std::string& text) {
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 2)};
}

std::string of_count(const CLI::App& verb, const std::string& text) {
  const auto [option, rest] = taken_apart(text);
  if (rest.find("At Most") != std::string::npos) return option + " is there twice; say it once";
  std::string type;
  for (const CLI::Option* known : verb.get_options()) {
    if (known->get_name() == option || known->check_lname(option.substr(std::min<std::size_t>(
                                           option.find_first_not_of('-'), option.size()))))
      type = known->get_type_name();
  }
  return option + " needs a value behind it" + (type.empty() ? "" : ": " + option + " " + type);
}

}  // namespace

bool is_meant_as_option(const CLI::App& verb, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  if (verb.get_option_no_throw(flag) != nullptr) return true;
  if (flag.find(' ') != std::string::npos || !is_flag(word)) return false;
  return word.starts_with("--") || !meant_by(flag, verb).empty();
}

std::optional<std::string> complaint_of_missing_value(const CLI::App& verb,
                                                      const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != end; ++word) {
    const CLI::Option* option = word->starts_with('-') ? verb.get_option_no_throw(*word) : nullptr;
    if (option == nullptr || option->get_items_expected_max() == 0) continue;
    const auto next = word + 1;
    const bool has_value =
        next != end && !(next->starts_with("--") &&
                         verb.get_option_no_throw(next->substr(0, next->find('='))) != nullptr);
    if (has_value || option->get_expected_min() == 0) continue;
    const std::string hint = *word == "--tag" ? "; what GNU parallel calls --tag is --prefix" : "";
    return *word + " needs a value behind it: " + *word + " " + option->get_type_name() + hint;
  }
  return std::nullopt;
}

std::string complaint_of(const CLI::App& app, const CLI::ParseError& error,
                         const std::vector<std::string>& words) {
  const CLI::App& verb = innermost(app);
  std::string text = error.what();
  if (const auto flag = of_unknown_flag(app, words)) return *flag;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return of_extras(app, words);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    // Whoever misspelt an inner verb is told of that.
    if (const auto extras = app.remaining(true); !extras.empty()) return of_extras(app, words);
    return of_missing(verb, text.substr(0, text.find(" is required")));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return of_count(verb, text);
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const std::size_t middle = text.find(" excludes ");
    if (middle != std::string::npos)
      return text.substr(0, middle) + " and " + text.substr(middle + 10) + " exclude each other";
  }
  return text;
}

std::string complaint_of_verb(const std::string& word, const std::vector<std::string>& verbs) {
  if (word == "alloc")
    return "there is no verb 'alloc': the engine asks the batch system for allocations when there "
           "is "
           "work; `hpcbatch sites add` tells it of a batch system, `hpcbatch keep SHAPE --until "
           "TIME` "
           "keeps a pilot running, and `hpcbatch allocations` lists them";
  std::string meant = meant_elsewhere(kVerbsElsewhere, word);
  std::vector<std::string> known = verbs;
  known.insert(known.end(), {"--help", "--version"});
  if (word == "-V" || word == "-v") meant = "--version";
  if (meant.empty()) meant = nearest_spelling(word, known);
  return "there is no verb '" + show_text(word) + "'" +
         (meant.empty() ? "; `hpcbatch --help` lists them" : "; did you mean '" + meant + "'?");
}

std::string with_pointer(const std::string& sentence, const std::string& verb) {
  return sentence + (sentence.ends_with('?') ? " See" : "; see") + " `hpcbatch " + verb +
         " --help`";
}

}  // namespace hpcbatch
