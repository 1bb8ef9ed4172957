#include "cli/parse/reference.hpp"

#include "cli/parse/help_text.hpp"
#include "cli/parse/parse.hpp"

#include <CLI/App.hpp>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace hpcbatch {
namespace {

/// A verb as it is typed, `sites add`, and what may follow it.
struct Verb {
  std::string words;
  std::vector<const CLI::App*> inner;
  std::vector<const CLI::Option*> options;
  std::string choices;  ///< of what it takes without an option
};

void collect(const CLI::App& verb, const std::string& words, std::vector<Verb>& into) {
  Verb found{.words = words, .inner = {}, .options = {}, .choices = {}};
  for (const CLI::App* each : verb.get_subcommands(nullptr)) {
    if (!each->get_name().empty()) found.inner.push_back(each);
  }
  for (const CLI::Option* option : verb.get_options(nullptr)) {
    if (option->nonpositional()) {
      if (!option->get_group().empty()) found.options.push_back(option);
      continue;
    }
    std::string choices = value_text(*option);
    if (choices.find('|') == std::string::npos) continue;
    std::replace(choices.begin(), choices.end(), '|', ' ');
    found.choices += " " + choices;
  }
  into.push_back(found);
  for (const CLI::App* each : found.inner)
    collect(*each, (words.empty() ? "" : words + " ") + each->get_name(), into);
}

std::vector<Verb> verbs_of(const CLI::App& app) {
  std::vector<Verb> all;
  collect(app, "", all);
  return all;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

/// Between single quotes of any of the three shells: without what would end them.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\n') break;
    if (c != '\'' && c != '\\') out += c;
  }
  return out + "'";
}

std::string words_after(const Verb& verb) {
  std::string words;
  for (const CLI::App* each : verb.inner) words += " " + each->get_name();
  for (const CLI::Option* option : verb.options)
    for (const std::string& name : names_of(*option)) words += " " + name;
  words += verb.choices;
  if (verb.words.empty()) words += " help --version";
  return words.empty() ? words : words.substr(1);
}

/// Behind one of these a value stands, of which shells know files.
std::string options_with_values(const Verb& verb) {
  std::string words = " ";
  for (const CLI::Option* option : verb.options) {
    if (!takes_value(*option)) continue;
    for (const std::string& name : names_of(*option)) words += name + " ";
  }
  return words;
}

/// The verb that stands on the line so far; what follows `--` is another program's.
constexpr const char* kVerbOnTheLine = R"(  local verb= word i
  for ((i = first; i < last; ++i)); do
    word=${line[i]}
    if [[ $word == -- ]]; then other=yes; break; fi
    if [[ " $known " == *" $verb${verb:+_}$word "* ]]; then verb+=${verb:+_}$word; fi
  done
)";

std::string underscored(std::string words) {
  for (char& c : words) {
    if (c == ' ') c = '_';
  }
  return words;
}

std::string known_verbs(const std::vector<Verb>& verbs) {
  std::string known;
  for (const Verb& verb : verbs)
    if (!verb.words.empty()) known += (known.empty() ? "" : " ") + underscored(verb.words);
  return known;
}

std::string cases(const std::vector<Verb>& verbs) {
  std::string text = "  case $verb in\n";
  for (const Verb& verb : verbs) {
    text += "    " + (verb.words.empty() ? std::string("''") : underscored(verb.words)) +
            ") offer='" + words_after(verb) + "' values='" + options_with_values(verb) + "' ;;\n";
  }
  return text + "  esac\n  if [[ \"$values\" == *\" ${line[last-1]} \"* ]]; then offer=; fi\n";
}

/// The function up to where it knows what to offer; `line` is the shell's words on the line, of which `first` follows our name and
/// `last` is the one to complete.
std::string offers(const std::vector<Verb>& verbs, const std::string& line, const char* first,
                   const char* last) {
  return "_hpcbatch() {\n  local known='" + known_verbs(verbs) +
         "' offer= values= other=\n  local -a line=(\"${" + line +
         "[@]}\")\n  local first=" + first + " last=" + last + "\n" + kVerbOnTheLine + cases(verbs);
}

/// A file wherever a word is none of ours, as for any program.
std::string for_bash(const std::vector<Verb>& verbs) {
  return "# hpcbatch for bash: source <(hpcbatch completion bash)\n" +
         offers(verbs, "COMP_WORDS", "1", "$COMP_CWORD") +
         "  COMPREPLY=()\n  [[ -z $other ]] || return 0\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$offer\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
         "complete -o bashdefault -o default -F _hpcbatch hpcbatch\n";
}

std::string for_zsh(const std::vector<Verb>& verbs) {
  return "#compdef hpcbatch\n# hpcbatch for zsh: source <(hpcbatch completion zsh)\n" +
         offers(verbs, "words", "2", "$CURRENT") +
         "  if [[ -z $other && -n $offer ]]; then compadd -- ${=offer}; fi\n  _files\n}\n"
         "compdef _hpcbatch hpcbatch\n";
}

/// Where fish offers what follows the verb: once all of its words are on the line.
std::string condition_of(const Verb& verb) {
  if (verb.words.empty()) return "__fish_use_subcommand";
  std::string condition, word;
  for (const char c : verb.words + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
    word.clear();
  }
  return condition;
}

std::string fish_option(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_lnames()) text += " -l " + name;
  for (const std::string& name : option.get_snames()) text += " -s " + name;
  return text + (takes_value(option) ? " -r -d " : " -d ") + in_quotes(option.get_description()) +
         "\n";
}

/// fish shows what each says; it completes files by itself where nothing forbids it.
std::string for_fish(const std::vector<Verb>& verbs) {
  std::string text = "# hpcbatch for fish: hpcbatch completion fish | source\n";
  for (const Verb& verb : verbs) {
    const std::string start = "complete -c hpcbatch -n " + in_quotes(condition_of(verb));
    for (const CLI::App* each : verb.inner) {
      text +=
          start + " -a " + each->get_name() + " -d " + in_quotes(each->get_description()) + "\n";
    }
    if (!verb.choices.empty()) text += start + " -a " + in_quotes(verb.choices.substr(1)) + "\n";
    for (const CLI::Option* option : verb.options) text += start + fish_option(*option);
  }
  return text;
}

}  // namespace

std::string completion_for(const CLI::App& app, std::string_view shell) {
  const std::vector<Verb> verbs = verbs_of(app);
  if (shell == "bash") return for_bash(verbs);
  if (shell == "zsh") return for_zsh(verbs);
  if (shell == "fish") return for_fish(verbs);
  throw std::invalid_argument("there is no completion for '" + std::string(shell) +
                              "'; say bash, zsh or fish");
}

}  // namespace hpcbatch

#ifndef HPCBATCH_VERSION
#error "the build names the version"
#endif

namespace hpcbatch {
namespace {

/// As groff_man(7) has to be told what it would else read as a request or a hyphen.
std::string escaped(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_start = c == '\n';
  }
  return out;
}

/// Lines that are indented, and whole paragraphs of them, stay as they are.
std::string paragraphs(std::string_view text) {
  std::string out;
  bool is_kept = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool keeps = line.starts_with(' ');
    if (keeps != is_kept) out += keeps ? ".PP\n.nf\n" : ".fi\n";
    is_kept = keeps;
    out += line.empty() ? std::string(".PP\n") : escaped(line) + "\n";
  }
  return out + (is_kept ? ".fi\n" : "");
}

std::string option_text(const CLI::Option& option) {
  std::string name = option.nonpositional() ? option.get_name(false, true) : option.get_name(true);
  std::replace(name.begin(), name.end(), ',', ' ');
  const std::string type = value_text(option);
  return ".TP\n\\fB" + escaped(name) + "\\fR" +
         (type.empty() ? "" : " \\fI" + escaped(type) + "\\fR") + "\n" +
         escaped(option.get_description()) + "\n";
}

void add_verb(const CLI::App& verb, const std::string& before, std::string& page) {
  const std::string name = (before.empty() ? "" : before + " ") + verb.get_name();
  page += ".SS \"" + escaped(name) + "\"\n" + paragraphs(verb.get_description());
  for (const CLI::Option* option : verb.get_options(nullptr)) {
    if (!option->get_group().empty() && !option->check_lname("help")) page += option_text(*option);
  }
  const std::string footer = verb.get_footer();
  if (!footer.empty()) page += ".PP\n" + paragraphs(footer);
  for (const CLI::App* inner : verb.get_subcommands(nullptr)) {
    if (!inner->get_name().empty()) add_verb(*inner, name, page);
  }
}

}  // namespace

std::string manual_page(const CLI::App& app, std::string_view overview) {
  std::string page =
      ".TH HPCBATCH 1 \"\" \"hpcbatch " HPCBATCH_VERSION
      "\" \"User Commands\"\n.SH NAME\nhpcbatch \\- runs many small tasks inside few batch jobs\n"
      ".SH SYNOPSIS\n.B hpcbatch\n.I VERB\n[\\fIOPTIONS\\fR] [\\fB\\-\\-\\fR \\fICOMMAND\\fR...]\n"
      ".SH DESCRIPTION\n" +
      paragraphs(overview) + ".SH VERBS\n";
  for (const CLI::App* verb : app.get_subcommands(nullptr)) add_verb(*verb, "", page);
  page +=
      ".SH \"FILES OF TASKS\"\nSee \\fBhpcbatch help task\\-file\\fR.\n"
      ".SH FILES\n.TP\n\\fI~/.config/hpcbatch/config.yaml\\fR\nSites, their shapes and limits.\n"
      ".TP\n\\fI~/.local/state/hpcbatch\\fR\nThe store, the log and the socket of the engine.\n"
      ".SH ENVIRONMENT\n.TP\n\\fBHPCBATCH_HOME\\fR\nAnother folder for the store, the log and the "
      "socket.\n"
      ".TP\n\\fBHPCBATCH_PLUGIN_PATH\\fR\nFolders of plugins, before those that are installed.\n"
      ".SH \"SEE ALSO\"\n.BR sbatch (1),\n.BR qsub (1)\n";
  return page;
}

}  // namespace hpcbatch

namespace hpcbatch::detail {

// `snakemake-profile`: what a user of Snakemake puts into ~/.config/snakemake/hpcbatch/config.yaml.

namespace {

constexpr const char* kProfile = R"(# Snakemake on hpcbatch: snakemake --profile hpcbatch
# Written by `hpcbatch snakemake-profile`; the settings are yours to change.
executor: hpcbatch
# From a checkout of hpcbatch: pip install ./python ./snakemake ./snakemake/scheduler
scheduler: hpcbatch
# Everything that is ready is queued; what starts when is decided where there is room.
jobs: 100000
# Of a job that says nothing: a pilot packs jobs by what they ask for.
default-resources:
  - mem_mb=2000
  - runtime=60
# What a lost node or a pilot's end cut runs again by itself; a command that fails once fails again.
retries: 0
# What a Snakemake that was killed has running is taken up, not run again.
rerun-incomplete: true
latency-wait: 30
)";

}  // namespace

void add_snakemake_verbs(CLI::App& app, Command& into) {
  CLI::App* verb =
      app.add_subcommand("snakemake-profile", "print a profile for Snakemake with this executor");
  verb->footer(
      "Examples:\n  hpcbatch snakemake-profile > ~/.config/snakemake/hpcbatch/config.yaml\n"
      "  snakemake --profile hpcbatch");
  verb->callback([&into] { into = ShowText{kProfile}; });
}

}  // namespace hpcbatch::detail
