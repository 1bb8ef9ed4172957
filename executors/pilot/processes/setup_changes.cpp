#include "pilot/processes/setup_changes.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kBeforeSetup = "HPCBATCH_BEFORE_SETUP";
constexpr char kEnd = '\1';
// Of the shell that ran the lines.
constexpr std::array<std::string_view, 4> kShells{"_", "SHLVL", "PWD", "OLDPWD"};

using Variables = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

void add_line(Variables& variables, std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || equals == 0) return;
  variables.emplace(line.substr(0, equals), line.substr(equals + 1));
}

Variables read_before(std::string_view text) {
  Variables variables;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kEnd), text.size());
    add_line(variables, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return variables;
}

bool is_tasks(const std::string& name) {
  return !is_pilots(name) && !name.starts_with("HPCBATCH_") &&
         std::find(kShells.begin(), kShells.end(), name) == kShells.end();
}

bool is_list(std::string_view name) {
  // The last two are those of environment modules.
  return name.ends_with("PATH") || name.ends_with("_DIRS") || name == "LOADEDMODULES" ||
         name == "_LMFILES_";
}

Words list_words(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string joined_list(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (&word == &words.front() ? "" : ":") + word;
  return text;
}

}  // namespace

SetupChanges::SetupChanges(std::string_view before_text, char* const* now_lines) {
  if (before_text.empty()) return;
  const Variables before = read_before(before_text);
  Variables now;
  for (; *now_lines != nullptr; ++now_lines) add_line(now, *now_lines);
  for (const auto& [name, value] : now) {
    const auto at = before.find(name);
    if (is_tasks(name) && (at == before.end() || at->second != value))
      compare(name, at == before.end() ? "" : at->second, value);
  }
  for (const auto& [name, value] : before) {
    if (is_tasks(name) && !now.contains(name)) unset_.insert(name);
  }
}

void SetupChanges::compare(const std::string& name, const std::string& before,
                           const std::string& now) {
  if (!is_list(name)) {
    set_[name] = now;
    return;
  }
  ListChange& change = lists_[name];
  const Words old = list_words(before);
  const Words words = list_words(now);
  bool is_front = true;
  for (const std::string& word : words) {
    if (has(old, word)) {
      is_front = false;
    } else {
      (is_front ? change.front : change.back).push_back(word);
    }
  }
  for (const std::string& word : old) {
    if (!has(words, word)) change.gone.push_back(word);
  }
}

void SetupChanges::apply(BaseEnvironment& environment) const {
  if (set_.empty() && lists_.empty() && unset_.empty()) return;
  Variables variables;
  for (const std::string& line : environment) add_line(variables, line);
  for (const auto& [name, value] : set_) variables[name] = value;
  for (const std::string& name : unset_) variables.erase(name);
  for (const auto& [name, change] : lists_) {
    Words words = change.front;
    for (const std::string& word : list_words(variables[name])) {
      if (!has(change.gone, word) && !has(change.front, word) && !has(change.back, word))
        words.push_back(word);
    }
    words.insert(words.end(), change.back.begin(), change.back.end());
    variables[name] = joined_list(words);
  }
  environment.clear();
  for (const auto& [name, value] : variables)
    environment.push_back(std::string(name).append("=").append(value));
}

std::string take_before_setup() {
  const char* text = std::getenv(kBeforeSetup);
  std::string before = text == nullptr ? "" : text;
  ::unsetenv(kBeforeSetup);
  return before;
}

}  // namespace hpcbatch::pilot
