#include "batch/directives.hpp"

#include "model/item.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace hpcbatch::batch {
namespace {

std::string spelled(const Directive& directive, std::string_view mark) {
  std::string all = "`";
  all += mark == "#SBATCH" ? "--" : "-";
  all += directive.name;
  if (directive.letter != 0) (all += "`, `-") += directive.letter;
  return all + "`";
}

void add_table(std::string& text, std::span<const Directive> directives, std::string_view mark,
               Fate fate, std::string_view title) {
  ((text += "\n### ") += mark) += title;
  text += "\n\n| option | |\n|---|---|\n";
  for (const Directive& one : directives) {
    if (one.fate != fate) continue;
    (((text += "| ") += spelled(one, mark)) += " | ") += one.what;
    text += " |\n";
  }
}

}  // namespace

std::string directives_as_markdown(std::span<const Directive> directives, std::string_view mark) {
  std::string text;
  add_table(text, directives, mark, Fate::Holds, ": what holds");
  add_table(text, directives, mark, Fate::LeftOut, ": what is left out, with a word");
  add_table(text, directives, mark, Fate::Refused, ": what is refused");
  return text;
}

std::vector<std::string> split_words(std::string_view text, const std::string& where, WordsOf of) {
  const bool is_sbatchs = of == WordsOf::Sbatch;
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  bool is_escaped = false;
  for (const char c : text) {
    if (is_sbatchs && !is_escaped && c == '\\') {
      is_escaped = in_word = true;
      continue;
    }
    if (std::exchange(is_escaped, false) && (quote != 0 || (c != ' ' && c != '\t'))) {
      word += c;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else if (c == '#' && (is_sbatchs || !in_word)) {
      break;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) throw std::invalid_argument(where + "a quotation mark is not closed");
  if (in_word) words.push_back(word);
  return words;
}

std::string value_for(std::string_view option, const std::string& value) {
  const bool is_name = option == "--name" || option == "--cwd";
  return is_name ? as_it_stands(value) : value;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string refusal_of(const std::string& where, const std::string& said, std::string_view what) {
  return where + "'" + said + "': " + std::string(what);
}

}  // namespace hpcbatch::batch
