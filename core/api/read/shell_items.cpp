#include "api/read/shell_items.hpp"

#include "model/placeholders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace hpcbatch {
namespace {

std::string_view program_name(std::string_view word) {
  return word.substr(word.rfind('/') + 1);
}

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& names, std::string_view word) {
  return std::find(names.begin(), names.end(), program_name(word)) != names.end();
}

bool is_shell(std::string_view word) {
  static constexpr std::array<std::string_view, 13> kShells{"sh",   "bash",  "dash", "zsh",  "ksh",
                                                            "ash",  "fish",  "csh",  "tcsh", "mksh",
                                                            "lksh", "rbash", "rksh"};
  return is_one_of(kShells, word);
}

/// Those that hand the text behind -c to a shell.
bool hands_to_shell(std::string_view word) {
  static constexpr std::array<std::string_view, 5> kPrograms{"su", "runuser", "script", "flock",
                                                             "sg"};
  return is_one_of(kPrograms, word);
}

using Word = std::vector<std::string>::const_iterator;

bool is_option(const std::string& word) {
  return word.size() > 1 && (word.front() == '-' || word.front() == '+');
}

/// The program that a shell is given by -c, wherever that stands among its options; `end`: none.
Word program_of_shell(Word at, Word end) {
  bool is_given = false;
  for (; at != end && is_option(*at); ++at) {
    if (*at == "--") {
      ++at;
      break;
    }
    const bool is_long = at->starts_with("--");
    is_given = is_given || (!is_long && at->front() == '-' && at->find('c') != std::string::npos);
    // Options with a value that is a word of its own, as in `-o pipefail`.
    const bool has_value = is_long ? *at == "--rcfile" || *at == "--init-file"
                                   : at->find_first_of("oO") != std::string::npos;
    if (has_value && at + 1 != end) ++at;
  }
  return is_given ? at : end;
}

/// The word behind -c, or what is joined to it.
Word text_behind_c(Word at, Word end) {
  for (; at != end; ++at) {
    if (at->starts_with("--command=")) return at;
    const bool is_c = *at == "--command" || (is_option(*at) && !at->starts_with("--") &&
                                             at->find('c') != std::string::npos);
    if (!is_c) continue;
    return at->ends_with('c') || *at == "--command" ? std::min(at + 1, end) : at;
  }
  return end;
}

/// Words of the command that a shell reads as a program.
std::vector<Word> read_by_shells(const std::vector<std::string>& command) {
  std::vector<Word> all;
  for (auto word = command.begin(); word != command.end(); ++word) {
    Word text = command.end();
    if (is_shell(*word)) text = program_of_shell(word + 1, command.end());
    if (hands_to_shell(*word)) text = text_behind_c(word + 1, command.end());
    if (program_name(*word) == "env") {
      text = std::find_if(word + 1, command.end(), [](const std::string& option) {
        return option == "-S" || option.starts_with("--split-string");
      });
      if (text != command.end() && text->find('=') == std::string::npos) ++text;
    }
    if (text != command.end()) all.push_back(text);
  }
  return all;
}

}  // namespace

void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what) {
  std::string_view place;
  for (const Word text : read_by_shells(command)) {
    if (place.empty()) place = first_item_place(*text, item);
  }
  if (place.empty()) return;
  throw BadRequest(
      fmt::format("{0}: '{1}' stands in the program of a shell, which would run what an item "
                  "holds; hand it over as an argument, sh -c '... \"$1\"' sh {1}, or write "
                  "\"$HPCBATCH_ITEM\" there (items that are commands: sh -c 'eval \"$1\"' sh {1})",
                  what, place));
}

}  // namespace hpcbatch
