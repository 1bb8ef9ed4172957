#include "programs/program_words.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace hpcbatch {
namespace {

using Names = std::span<const std::string_view>;

bool is_among(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_place(char c) {
  return c == kPlainPlace || c == kQuotedPlace || c == kRawPlace;
}

bool takes_text(std::string_view word) {
  return std::any_of(word.begin(), word.end(), is_place);
}

/// "/bin/bash-5.2" and "ksh93" without folder and version.
std::string program_name(std::string_view word) {
  std::string name = lower_case(std::string(word.substr(word.rfind('/') + 1)));
  for (const std::string_view end : {".exe", "-static"}) {
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  }
  while (name.size() > 1 && std::string_view("0123456789.-").find(name.back()) != std::string::npos)
    name.pop_back();
  return name;
}

/// Those that hand their arguments, joined with blanks, to a shell: here or on another machine.
constexpr std::array<std::string_view, 14> kJoin{"ssh",  "rsh",  "remsh",  "mosh",     "autossh",
                                                 "pdsh", "dsh",  "clush",  "parallel", "watch",
                                                 "eval", "tmux", "screen", "bsub"};
/// Those that hand the text behind -c to a shell.
constexpr std::array<std::string_view, 5> kHandOver{"su", "runuser", "script", "flock", "sg"};
/// Shells whose names do not end as a shell's.
constexpr std::array<std::string_view, 9> kOddShells{
    "nu", "rc", "es", "ion", "murex", "oil", "powershell", "expect", "ipython"};
/// To whom single quotes are not all that they are to sh.
constexpr std::array<std::string_view, 17> kOtherQuotes{
    "fish", "csh",   "tcsh",       "nu",     "rc",      "es",   "ion",   "murex", "elvish",
    "pwsh", "xonsh", "powershell", "expect", "ipython", "wish", "tclsh", "jimsh"};
/// Those that run another program, which may be any of these.
constexpr std::array<std::string_view, 45> kRunOthers{
    "env",     "nice",    "timeout",     "nohup",       "setsid",  "stdbuf",   "taskset",
    "time",    "sudo",    "doas",        "srun",        "mpirun",  "mpiexec",  "mpiexec.hydra",
    "chroot",  "unshare", "xargs",       "ionice",      "chrt",    "numactl",  "strace",
    "ltrace",  "sshpass", "exec",        "command",     "busybox", "toybox",   "bwrap",
    "docker",  "podman",  "apptainer",   "singularity", "ch-run",  "find",     "setpriv",
    "prlimit", "nsenter", "systemd-run", "capsh",       "cgexec",  "hpcbatch", "builtin",
    "pkexec",  "ip",      "faketime"};

struct Interpreter {
  std::string_view name;
  std::string_view code;      ///< letters of options that are followed by a program
  std::string_view values;    ///< of those that are followed by something else
  bool first_is_code{false};  ///< where no option gives one, its first argument is the program
  std::string_view file{};    ///< letters of options that name a file with the program
};
constexpr std::array kInterpreters{Interpreter{"python", "c", "WXQ"},
                                   Interpreter{"pypy", "c", "WXQ"},
                                   Interpreter{"perl", "eE", ""},
                                   Interpreter{"ruby", "e", "rIC"},
                                   Interpreter{"node", "ep", "rC"},
                                   Interpreter{"nodejs", "ep", "rC"},
                                   Interpreter{"bun", "ep", "r"},
                                   Interpreter{"php", "rBREF", "dczS"},
                                   Interpreter{"lua", "e", "l"},
                                   Interpreter{"luajit", "e", "l"},
                                   Interpreter{"r", "e", "gf"},
                                   Interpreter{"rscript", "e", ""},
                                   Interpreter{"julia", "eE", "JpLtC"},
                                   Interpreter{"octave", "", ""},
                                   Interpreter{"osascript", "e", "l"},
                                   Interpreter{"guile", "c", "lL"},
                                   Interpreter{"racket", "e", "lft"},
                                   Interpreter{"sbcl", "", ""},
                                   Interpreter{"emacs", "", "lf"},
                                   Interpreter{"vim", "cS", "u"},
                                   Interpreter{"nvim", "cS", "u"},
                                   Interpreter{"vi", "c", ""},
                                   Interpreter{"ex", "c", ""},
                                   Interpreter{"gdb", "", "px"},
                                   Interpreter{"gnuplot", "e", ""},
                                   Interpreter{"groovy", "e", ""},
                                   Interpreter{"ocaml", "e", "I"},
                                   Interpreter{"swipl", "gt", ""},
                                   Interpreter{"awk", "e", "vFilE", true, "f"},
                                   Interpreter{"gawk", "e", "vFilE", true, "f"},
                                   Interpreter{"mawk", "e", "vFW", true, "f"},
                                   Interpreter{"nawk", "e", "vF", true, "f"},
                                   Interpreter{"sed", "e", "l", true, "f"},
                                   Interpreter{"gsed", "e", "l", true, "f"},
                                   Interpreter{"jq", "", "LfC", true, "f"}};
/// Long options that are followed by a program, for whoever has them.
constexpr std::array<std::string_view, 25> kCodeOptions{"--command",
                                                        "--init-command",
                                                        "--session-command",
                                                        "--eval",
                                                        "--exec",
                                                        "--execute",
                                                        "--expression",
                                                        "--run",
                                                        "--cmd",
                                                        "--wrap",
                                                        "--code",
                                                        "--print",
                                                        "--source",
                                                        "--batch",
                                                        "-command",
                                                        "-encodedcommand",
                                                        "-batch",
                                                        "-ex",
                                                        "-eval",
                                                        "-exec",
                                                        "--split-string",
                                                        "--rsh",
                                                        "--to-command",
                                                        "--checkpoint-action",
                                                        "--use-compress-program"};
/// Of those, the ones that are nothing else with any program.
constexpr std::array<std::string_view, 3> kSurelyCode{"--wrap", "--eval", "--command"};

/// Any short name that ends as a shell's: there are more than any list has.
bool is_shell(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNone{"push", "mesh",  "gmsh", "hash",
                                                  "mash", "flash", "crash"};
  constexpr std::size_t kLongest = 6;
  return is_among(kOddShells, name) ||
         (name.ends_with("sh") && name.size() <= kLongest && name.find('.') == std::string::npos &&
          !is_among(kJoin, name) && !is_among(kNone, name));
}

const Interpreter* interpreter(std::string_view name) {
  const auto found = std::find_if(kInterpreters.begin(), kInterpreters.end(),
                                  [&](const Interpreter& one) { return one.name == name; });
  return found == kInterpreters.end() ? nullptr : &*found;
}

bool is_option(std::string_view word) {
  return word.size() > 1 && (word.front() == '-' || word.front() == '+');
}

bool is_long(std::string_view word) {
  return word.starts_with("--");
}

bool has_letter(std::string_view option, std::string_view letters) {
  return !is_long(option) && option.find_first_of(letters, 1) != std::string_view::npos;
}

/// "--eval", or "--eval=..." with its text in the same word.
bool is_code_option(std::string_view word) {
  return is_option(word) &&
         is_among(kCodeOptions, lower_case(std::string(word.substr(0, word.find('=')))));
}

enum class ReadAs : std::uint8_t { Data, Posix, OtherShell, Code };

/// Finds who reads which word.
class Readers {
 public:
  explicit Readers(const std::vector<std::string>& command)
      : command_(command), read_as_(command.size(), ReadAs::Data) {
    const std::string first = command.empty() ? "" : program_name(command.front());
    const bool may_run_any = is_among(kRunOthers, first);
    for (std::size_t at = 0; at < command.size(); ++at) {
      const std::string name = program_name(command[at]);
      const bool is_program = at == 0 || may_run_any;
      const bool is_unknown = at == 0 && takes_text(command[at]);
      if (is_shell(name) || is_unknown)
        shell(at + 1,
              is_among(kOtherQuotes, name) || is_unknown ? ReadAs::OtherShell : ReadAs::Posix);
      if (const Interpreter* known = interpreter(name)) interpreted(at + 1, *known, is_program);
      if (is_among(kHandOver, name)) behind_c(at + 1);
      if (name == "env") split_string(at + 1);
      if (is_program && is_among(kJoin, name)) joined(at + 1, name);
    }
  }

  ReadAs operator[](std::size_t word) const { return read_as_[word]; }

 private:
  void mark(std::size_t word, ReadAs as) {
    if (is_there(word)) read_as_[word] = std::max(read_as_[word], as);
  }
  bool is_option_at(std::size_t word) { return is_there(word) && is_option(command_[word]); }
  /// Each word is looked at for each program before it: of those there are few, else all is code.
  bool is_there(std::size_t word) {
    if (word >= command_.size()) return false;
    if (steps_left_ > 0) return --steps_left_, true;
    read_as_.assign(command_.size(), ReadAs::Code);
    return false;
  }

  /// The program that a shell is given by -c, wherever that stands among its options.
  void shell(std::size_t at, ReadAs as) {
    bool is_given = false;
    for (; is_option_at(at); ++at) {
      const std::string_view word = command_[at];
      if (takes_text(word)) mark(at, as);
      if (word == "--") {
        ++at;
        break;
      }
      if (is_code_option(word)) {
        if (word.find('=') == std::string_view::npos) mark(++at, as);
        continue;
      }
      const bool gives = has_letter(word, "cC");
      // The shells with quotes of their own take a program, and go on with options.
      const bool takes = gives && as == ReadAs::OtherShell && !is_option_at(at + 1);
      is_given = is_given || (gives && !takes);
      if (takes) mark(++at, as);
      // Options with a value that is a word of its own, as in `-o pipefail`.
      const bool has_value =
          is_long(word) ? word == "--rcfile" || word == "--init-file" : has_letter(word, "oO");
      if (has_value) ++at;
    }
    if (is_given) mark(at, as);
  }

  /// The words behind each -c, or what is joined to them.
  void behind_c(std::size_t at) {
    for (; is_there(at); ++at) {
      const std::string_view word = command_[at];
      if (!is_option(word) || !(is_code_option(word) || has_letter(word, "c"))) continue;
      mark(at, ReadAs::Posix);
      mark(at + 1, ReadAs::Posix);
    }
  }

  /// What env takes apart, with variables.
  void split_string(std::size_t at) {
    for (; is_option_at(at); ++at) {
      if (!has_letter(command_[at], "S") && !is_code_option(command_[at])) continue;
      mark(at, ReadAs::Code);
      mark(at + 1, ReadAs::Code);
    }
  }

  /// Options of a program that is asked for something come first, then perhaps a host.
  void joined(std::size_t at, std::string_view name) {
    const bool has_host = name != "watch" && name != "parallel" && name != "eval";
    const std::string_view values = has_host ? "BbcDEeFIiJLlmOoPpQRSWw" : "n";
    for (; is_option_at(at) && command_[at] != "--"; ++at) {
      if (name == "watch" && (has_letter(command_[at], "x") || command_[at] == "--exec")) return;
      const bool has_value =
          !is_long(command_[at]) && values.find(command_[at].back()) != std::string_view::npos;
      // ProxyCommand and its like.
      if (takes_text(command_[at])) mark(at, ReadAs::Code);
      if (has_value && has_letter(command_[at], "o")) mark(at + 1, ReadAs::Code);
      if (has_value) ++at;
    }
    if (has_host) ++at;
    for (; is_there(at) && !command_[at].starts_with(":::"); ++at) mark(at, ReadAs::Posix);
  }

  void interpreted(std::size_t at, const Interpreter& known, bool is_program) {
    bool is_given = false;
    for (; is_option_at(at) && command_[at] != "--"; ++at) {
      const std::string_view word = command_[at];
      if (is_code_option(word)) {
        mark(at, ReadAs::Code);
        if (word.find('=') == std::string_view::npos) mark(++at, ReadAs::Code);
        is_given = true;
      } else if (word.size() > 2 && known.values.find(word[1]) != std::string_view::npos) {
        continue;  // with its value, which is no program
      } else if (!known.code.empty() && has_letter(word, known.code)) {
        // -e TEXT, or -eTEXT
        mark(at, ReadAs::Code);
        if (known.code.find(word.back()) != std::string_view::npos) mark(++at, ReadAs::Code);
        is_given = true;
      } else if (!is_long(word) && !known.values.empty() &&
                 known.values.find(word.back()) != std::string_view::npos) {
        ++at;
      } else if (!known.file.empty() && has_letter(word, known.file)) {
        is_given = true;
        ++at;
      }
    }
    if (known.first_is_code && !is_given && is_program) mark(at, ReadAs::Code);
  }

  const std::vector<std::string>& command_;
  std::vector<ReadAs> read_as_;
  std::size_t steps_left_{64 * command_.size() + 1024};
};

/// Words in a program of a shell that read what they get once more, so that quotes are gone by then.
bool reads_again(std::string_view program) {
  constexpr std::string_view kBetween = " \t\n;|&()`<>'\"";
  while (!program.empty()) {
    const auto begin = std::min(program.find_first_not_of(kBetween), program.size());
    const auto end = std::min(program.find_first_of(kBetween, begin), program.size());
    const std::string name = program_name(program.substr(begin, end - begin));
    if (!name.empty() && (is_shell(name) || is_among(kJoin, name) || is_among(kHandOver, name)))
      return true;
    program.remove_prefix(end);
  }
  return false;
}

/// Whether all quoted places stand where sh takes quotes for quotes: in none, in no comment and in
/// no here-document.
bool stands_bare(std::string_view program) {
  if (program.find("<<") != std::string_view::npos ||
      program.find("$'") != std::string_view::npos || program.find('`') != std::string_view::npos ||
      reads_again(program))
    return false;
  char quote = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const char c = program[at];
    if (c == kQuotedPlace && quote != 0) return false;
    if (c == '\\' && quote != '\'') {
      if (at + 1 < program.size() && program[at + 1] == kQuotedPlace) return false;
      ++at;
    } else if (quote == 0 && (c == '\'' || c == '"' || c == '#')) {
      quote = c;
    } else if (c == quote || (quote == '#' && c == '\n')) {
      quote = 0;
    }
  }
  return true;
}

/// A program that nobody knows: whether the word, of which a place is a part, looks like code.
bool looks_like_code(std::string_view word, std::string_view before) {
  const auto name_of = [](std::string_view option) {
    return lower_case(std::string(option.substr(0, option.find('='))));
  };
  if (is_among(kSurelyCode, name_of(word)) || is_among(kSurelyCode, name_of(before))) return true;
  if (word.size() == 1) return false;
  for (const std::string_view code : {"$(", "`", "${", "\"\x1a", "'\x1a"}) {
    if (word.find(code) != std::string_view::npos) return true;
  }
  const bool has_blank = word.find_first_of(" \t\n") != std::string_view::npos;
  const bool has_sign = word.find_first_of(";|&<>$") != std::string_view::npos;
  // -c, -lc, -e, --eval and their like.
  const bool follows_option =
      is_code_option(before) ||
      (is_option(before) && !is_long(before) && before.size() <= 5 &&
       std::string_view("ceECr").find(before.back()) != std::string_view::npos);
  const bool is_joined = is_code_option(word);
  return (has_blank && (has_sign || follows_option || is_joined)) ||
         (has_sign && (follows_option || is_joined));
}

}  // namespace

std::string without_marks(std::string_view text) {
  std::string out(text);
  std::replace_if(out.begin(), out.end(), is_place, '?');
  return out;
}

char take_form(std::string_view& inner) {
  constexpr std::array<std::pair<std::string_view, char>, 2> kForms{
      {{":q", kQuotedPlace}, {":raw", kRawPlace}}};
  for (const auto& [sign, form] : kForms) {
    if (!inner.ends_with(sign)) continue;
    inner.remove_suffix(sign.size());
    return form;
  }
  return kPlainPlace;
}

std::string fill_braces(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name, char form)>& value) {
  constexpr std::size_t kLongestName = 64;
  std::string out;
  while (!text.empty()) {
    const auto open = std::min(text.find('{'), text.size());
    out += text.substr(0, open);
    text.remove_prefix(open);
    const auto close = text.substr(0, kLongestName).find('}');
    std::optional<std::string> filled;
    if (close != std::string_view::npos) {
      std::string_view name = text.substr(1, close - 1);
      const char form = take_form(name);
      filled = value(name, form);
    }
    out += filled ? *filled : std::string(text.substr(0, 1));
    text.remove_prefix(filled ? close + 1 : std::min<std::size_t>(text.size(), 1));
  }
  return out;
}

std::optional<MisplacedText> misplaced_text(const std::vector<std::string>& command) {
  using Why = MisplacedText::Why;
  if (std::none_of(command.begin(), command.end(), takes_text)) return std::nullopt;
  const Readers readers(command);
  for (std::size_t at = 0; at < command.size(); ++at) {
    const std::string& word = command[at];
    if (!takes_text(word)) continue;
    const bool has_plain = word.find(kPlainPlace) != std::string::npos;
    const bool has_raw = word.find(kRawPlace) != std::string::npos;
    const bool is_of_a_shell = readers[at] != ReadAs::Code;
    if (readers[at] == ReadAs::Data) {
      if (has_plain && looks_like_code(word, at == 0 ? "" : command[at - 1]))
        return MisplacedText{Why::Suspect, at, true};
    } else if (has_plain || has_raw) {
      return MisplacedText{Why::InProgram, at, is_of_a_shell};
    } else if (readers[at] != ReadAs::Posix || !stands_bare(word)) {
      return MisplacedText{Why::Quoted, at, is_of_a_shell};
    }
  }
  return std::nullopt;
}

bool is_code_of_no_shell(const std::vector<std::string>& command, std::size_t word) {
  return Readers(command)[word] == ReadAs::Code;
}

std::string why_misplaced(const MisplacedText& text, std::string_view place,
                          std::string_view quoted, std::string_view raw) {
  switch (text.why) {
    case MisplacedText::Why::InProgram:
      if (!text.is_of_a_shell) break;
      return fmt::format(
          "'{0}' stands in the program of a shell, which would run what it holds; hand it over as "
          "an argument, sh -c '... \"$1\"' sh {0}, or write {1} there, which puts it in quotes",
          place, quoted);
    case MisplacedText::Why::Quoted:
      return fmt::format(
          "'{0}' stands where quotes for sh do not help: in quotes already, in a here-document, in "
          "what is read twice, or in the program of something else than sh; hand it over as an "
          "argument, sh -c '... \"$1\"' sh {{...}}",
          place);
    case MisplacedText::Why::Suspect:
      return fmt::format(
          "'{0}' is part of a word that looks like a program, and would be run with what it holds; "
          "hand it over as a word of its own, sh -c '... \"$1\"' sh {0}, or write {1} if nothing "
          "reads that word as a program",
          place, raw);
  }
  return fmt::format(
      "'{0}' stands in a program, which would run what it holds; hand it over as an argument, as "
      "in python3 -c 'import sys; print(sys.argv[1])' {0} or sh -c '... \"$1\"' sh {0}",
      place);
}

}  // namespace hpcbatch
