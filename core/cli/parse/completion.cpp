#include "cli/parse/reference.hpp"

#include "cli/parse/help_text.hpp"

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
