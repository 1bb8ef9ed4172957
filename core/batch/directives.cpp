#include "batch/directives.hpp"

#include "model/item.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace hpcbatch::batch {
namespace {

struct Letter {
  char letter;
  bool is_escaped;  ///< meant as it stands
};

std::vector<Letter> letters_of(std::string_view text, WordsOf of) {
  std::vector<Letter> letters;
  bool is_escaped = false;
  for (const char c : text) {
    if (of == WordsOf::Sbatch && !is_escaped && c == '\\') {
      is_escaped = true;
      continue;
    }
    letters.push_back({c, is_escaped && c != ' ' && c != '\t'});
    is_escaped = false;
  }
  return letters;
}

}  // namespace

std::vector<std::string> split_words(std::string_view text, const std::string& where, WordsOf of) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const auto& [c, is_escaped] : letters_of(text, of)) {
    const bool is_sign = !is_escaped && quote == 0;
    if (is_sign && (c == ' ' || c == '\t' || c == '\r')) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
      continue;
    }
    if (is_sign && c == '#' && (of == WordsOf::Sbatch || !in_word)) break;
    in_word = true;
    if (is_sign && (c == '"' || c == '\''))
      quote = c;
    else if (!is_escaped && quote != 0 && c == quote)
      quote = 0;
    else
      word += c;
  }
  if (quote != 0) throw std::invalid_argument(where + "a quotation mark is not closed");
  if (in_word) words.push_back(word);
  return words;
}

std::string value_for(std::string_view option, const std::string& value) {
  const bool is_name = option == "--name" || option == "--cwd";
  return is_name ? as_it_stands(value) : value;
}

void add_mails(Terms& terms) {
  if (!terms.mails && !terms.mails_failures) return;
  const std::string target = terms.mails ? "mail:" : "failed:mail:";
  if (terms.mail_users.empty()) terms.mail_users.emplace_back();
  for (const std::string& user : terms.mail_users) {
    terms.options.emplace_back("--notify");
    terms.options.push_back(target + user);
  }
}

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string refusal_of(const std::string& where, const std::string& said, std::string_view what) {
  return where + "'" + said + "': " + std::string(what);
}

}  // namespace hpcbatch::batch
