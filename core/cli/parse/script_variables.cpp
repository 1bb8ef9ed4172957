#include "cli/parse/script.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

namespace hpcbatch {
namespace {

constexpr std::string_view kSpaces = " \t\r";
constexpr std::array<std::string_view, 5> kPrefixes{"SLURM_", "SLURMD_", "PBS_", "LSB_", "SGE_"};

bool is_name_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

std::string_view without_front(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kSpaces), text.size()));
}

std::string_view without_back(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

std::string_view without_quote(std::string_view before) {
  if (ends_with_any(before, {"\"", "'"})) before.remove_suffix(1);
  return before;
}

/// The line less its comment.  A quotation mark behind the `#` may close a string that began lines
/// before, so that such a line is taken whole.
std::string_view code_of(std::string_view line) {
  if (without_front(line).starts_with('#')) return {};
  bool in_single = false, in_double = false;
  const std::size_t last_quote = line.find_last_of("\"'");
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\'') in_single = !in_single;
    if (line[at] == '"') in_double = !in_double;
    const bool is_comment = line[at] == ' ' && at + 1 < line.size() && line[at + 1] == '#';
    const bool is_quoted = in_single || in_double;
    if (is_comment && !is_quoted && (last_quote == std::string_view::npos || last_quote < at))
      return line.substr(0, at);
  }
  return line;
}

/// Behind the value of a shell's assignment that begins at `at`.
std::size_t value_end(std::string_view code, std::size_t at) {
  char quote = 0;
  int depth = 0;
  for (; at < code.size(); ++at) {
    const char c = code[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'' || c == '`') {
      quote = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && depth > 0) {
      --depth;
    } else if (depth == 0 && (kSpaces.find(c) != std::string_view::npos || c == ';' || c == '&' ||
                              c == '|' || c == ')')) {
      break;
    }
  }
  return at;
}

/// What stands before a word in its command.
std::vector<std::string_view> words_before(std::string_view before) {
  before = before.substr(before.find_last_of(";&|(){}`") + 1);
  std::vector<std::string_view> words;
  for (before = without_front(before); !before.empty(); before = without_front(before)) {
    const std::size_t end = std::min(before.find_first_of(kSpaces), before.size());
    words.push_back(before.substr(0, end));
    before.remove_prefix(end);
  }
  return words;
}

bool is_any(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool declares(const std::vector<std::string_view>& words) {
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return is_any(word, {"export", "declare", "local", "readonly", "typeset"});
  });
}

/// `A=1 then` may stand before an assignment; `make` makes it an argument.
bool may_assign(const std::vector<std::string_view>& words) {
  return std::all_of(words.begin(), words.end(), [](std::string_view word) {
    return word.find('=') != std::string_view::npos || word.starts_with('-') ||
           is_any(word, {"export", "declare", "local", "readonly", "typeset", "then", "do", "else",
                         "if", "!"});
  });
}

/// An assignment whose value ends here is for the command behind it alone: `A=1 program`.
bool is_for_a_command(std::string_view rest) {
  for (rest = without_front(rest); !rest.empty(); rest = without_front(rest)) {
    if (std::string_view(";&|)}#").find(rest.front()) != std::string_view::npos) return false;
    const auto end = static_cast<std::size_t>(
        std::find_if_not(rest.begin(), rest.end(), is_name_letter) - rest.begin());
    if (end == 0 || end >= rest.size() || rest[end] != '=') return true;
    rest.remove_prefix(value_end(rest, end));
  }
  return false;
}

enum class Mention { None, Use, Set };

/// One place where a variable is named.
class Place {
 public:
  Place(std::string_view code, std::size_t begin, std::size_t end)
      : code_(code), before_(code.substr(0, begin)), after_(code.substr(end)), end_(end) {}

  Mention mention() {
    if (const auto found = of_environment(); found != Mention::None) return found;
    if (before_.ends_with('$')) return is_asked_for(1) ? Mention::None : Mention::Use;
    if (ends_with_any(before_, {"${", "${!", "${#"})) return in_braces();
    if (begins_with_any(after_, {"=", "+="}) && !after_.starts_with("==")) return assignment();
    return by_words();
  }
  /// From here on in the line the value of a `Set` is there.
  std::size_t holds_from() const { return holds_from_; }

 private:
  /// `environ["NAME"]` of Python, `$ENV{NAME}` of Perl, `Sys.getenv("NAME")` of R and so on.
  Mention of_environment() {
    const std::string_view asked = without_quote(before_);
    if (asked.ends_with("setdefault(")) return Mention::Set;
    if (!ends_with_any(asked, {"environ[", "environ.get(", "environ.pop(", "getenv(", "ENV[",
                               "ENV{", "ENV.fetch(", "ENVIRON[", "env[", "process.env."}))
      return Mention::None;
    std::string_view rest = after_;
    if (begins_with_any(rest, {"\"", "'"})) rest.remove_prefix(1);
    rest = without_front(rest);
    if (rest.starts_with(',')) return Mention::None;
    const bool is_call = rest.starts_with(')');
    if (begins_with_any(rest, {")", "]", "}"})) rest = without_front(rest.substr(1));
    if (begins_with_any(rest, {"=", "||=", "//="}) && !begins_with_any(rest, {"==", "=~"}))
      return Mention::Set;
    const bool has_default = begins_with_any(rest, {"or ", "|| ", "// ", "?? "});
    const bool is_question = is_call && begins_with_any(rest, {":", "is ", "and "});
    return has_default || is_question ? Mention::None : Mention::Use;
  }

  /// `-n "$NAME"`, `-z ${NAME}`.
  bool is_asked_for(std::size_t opening) const {
    const std::string_view test =
        without_back(without_quote(before_.substr(0, before_.size() - opening)));
    return ends_with_any(test, {" -n", " -z"});
  }

  Mention in_braces() {
    if (begins_with_any(after_, {":-", "-", ":+", "+"})) return Mention::None;
    if (begins_with_any(after_, {":=", "="})) return Mention::Set;
    return before_.ends_with("${") && is_asked_for(2) ? Mention::None : Mention::Use;
  }

  Mention assignment() {
    const auto words = words_before(before_);
    if (!may_assign(words)) return Mention::None;
    holds_from_ = value_end(code_, end_);
    if (!declares(words) && is_for_a_command(code_.substr(holds_from_))) return Mention::None;
    return Mention::Set;
  }

  Mention by_words() const {
    const auto words = words_before(before_);
    if (!words.empty()) {
      if (is_any(words.front(), {"read", "for", "mapfile", "readarray", "setenv"}) ||
          (words.front() == "printf" && words.back() == "-v"))
        return Mention::Set;
      if (is_any(words.back(), {"printenv", "let"})) return Mention::Use;
    }
    const bool is_index = before_.ends_with('[') && !before_.ends_with("[[");
    return is_index || is_in_arithmetic() ? Mention::Use : Mention::None;
  }

  bool is_in_arithmetic() const {
    int depth = 0;
    for (std::size_t at = 0; at + 1 < before_.size(); ++at) {
      const std::string_view two = before_.substr(at, 2);
      if (two != "((" && two != "))") continue;
      depth += two == "((" ? 1 : -1;
      ++at;
    }
    return depth > 0;
  }

  std::string_view code_, before_, after_;
  std::size_t end_, holds_from_{0};
};

class VariableReader {
 public:
  void line(std::string_view line, std::size_t number) {
    const std::string_view code = code_of(line);
    std::vector<std::pair<std::string, std::size_t>> set_here;
    for (std::size_t at = 0; at < code.size();) {
      if (!is_name_letter(code[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < code.size() && is_name_letter(code[at])) ++at;
      std::string name(code.substr(begin, at - begin));
      if (!is_batch_systems(name)) continue;
      Place place(code, begin, at);
      const Mention mention = place.mention();
      if (mention == Mention::Set) {
        set_here.emplace_back(std::move(name), place.holds_from());
      } else if (mention == Mention::Use) {
        use(name, number, begin, set_here);
      }
    }
    for (auto& [name, from] : set_here) set_.insert(std::move(name));
  }
  std::vector<BatchVariable> used;

 private:
  static bool is_batch_systems(std::string_view name) {
    return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) {
      return name.starts_with(prefix) && name.size() > prefix.size();
    });
  }
  void use(const std::string& name, std::size_t number, std::size_t at,
           const std::vector<std::pair<std::string, std::size_t>>& set_here) {
    const bool is_known =
        set_.contains(name) ||
        std::any_of(used.begin(), used.end(), [&](const auto& one) { return one.name == name; }) ||
        std::any_of(set_here.begin(), set_here.end(),
                    [&](const auto& one) { return one.first == name && one.second <= at; });
    if (!is_known) used.push_back({name, number});
  }

  std::set<std::string, std::less<>> set_;
};

}  // namespace

std::vector<BatchVariable> batch_variables_of(std::string_view text) {
  VariableReader reader;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) reader.line(line, ++number);
  return std::move(reader.used);
}

}  // namespace hpcbatch
