#include "cli/parse/parse.hpp"

#include <hpcbatch/text.hpp>

#include <CLI/App.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace hpcbatch {
namespace {

bool is_shown(const CLI::Option& option) {
  return option.nonpositional() && !option.get_group().empty();
}

void offer(std::string& offers, const std::string& word, const std::string& says) {
  offers += word + "\t" + says.substr(0, says.find('\n')) + "\n";
}

/// `a|b|c` of what a verb takes without an option.
void offer_choices(std::string& offers, const CLI::Option& option) {
  const std::string choices = value_text(option);
  if (choices.find('|') == std::string::npos) return;
  for (const std::string_view choice : parts_of(choices, '|'))
    offer(offers, std::string(choice), option.get_description());
}

constexpr const char* kBash = R"(# hpcbatch for bash: source <(hpcbatch completion bash)
_hpcbatch() {
  local offers
  offers=$("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" | cut -f 1)
  mapfile -t COMPREPLY < <(compgen -W "$offers" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o bashdefault -o default -F _hpcbatch hpcbatch
)";
constexpr const char* kZsh = R"(#compdef hpcbatch
# hpcbatch for zsh: source <(hpcbatch completion zsh)
_hpcbatch() {
  local offers=$("$words[1]" completion words -- "${(@)words[2,CURRENT-1]}" | cut -f 1)
  if [[ -n $offers ]]; then compadd -- ${(f)offers}; fi
  _files
}
compdef _hpcbatch hpcbatch
)";
/// fish shows what each says; it completes files by itself where nothing forbids it.
constexpr const char* kFish = R"(# hpcbatch for fish: hpcbatch completion fish | source
function __hpcbatch_offers
  set -l line (commandline -opc)
  $line[1] completion words -- $line[2..]
end
complete -c hpcbatch -a '(__hpcbatch_offers)'
)";

}  // namespace

std::string offers_after(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* verb = &app;
  for (const std::string& word : words) {
    // What follows is another program's.
    if (word == "--") return "";
    for (const CLI::App* inner : verb->get_subcommands(nullptr)) {
      if (inner->get_name() != word) continue;
      verb = inner;
      break;
    }
  }
  const CLI::Option* last = words.empty() ? nullptr : verb->get_option_no_throw(words.back());
  // A value, of which shells know files.
  if (last != nullptr && last->nonpositional() && last->get_items_expected_max() > 0) return "";
  std::string offers;
  for (const CLI::App* inner : verb->get_subcommands(nullptr)) {
    if (!inner->get_name().empty()) offer(offers, inner->get_name(), inner->get_description());
  }
  for (const CLI::Option* option : verb->get_options(nullptr)) {
    if (!option->nonpositional()) offer_choices(offers, *option);
    if (!is_shown(*option)) continue;
    for (const std::string& name : option->get_lnames())
      offer(offers, "--" + name, option->get_description());
    for (const std::string& name : option->get_snames())
      offer(offers, "-" + name, option->get_description());
  }
  if (verb == &app) {
    offer(offers, "help", "what a verb does");
    offer(offers, "--version", "of this program");
  }
  return offers;
}

std::string completion_for(std::string_view shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
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
  for (const std::string_view line : lines_of(text)) {
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
