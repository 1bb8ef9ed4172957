// What a scheduler plugin may add to its interface: what tasks may choose of the batch jobs that
// run them, beside what they need of nodes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// A class that is a `Scheduler` may be this too; the engine finds out with a dynamic_cast.  The
/// same promises: no I/O, no clock, callable from any thread.
///
/// A choice is a text KEY=VALUE, such as "account=lab2".  Values have neither blanks nor '+'.
class Choices {
 public:
  Choices() = default;
  Choices(const Choices&) = delete;
  Choices& operator=(const Choices&) = delete;
  virtual ~Choices() = default;

  /// The keys that this batch system has a word for.  Nothing by which a batch job would be found
  /// under another name, on another cluster or with other nodes than were asked for.
  virtual std::vector<std::string> choice_keys() const = 0;
  /// Options for `AllocationRequest::options`, behind those of the site: they go before these.
  virtual std::vector<std::string> options_for(const std::vector<std::string>& choices) const = 0;
  /// What of the choices a site's `options` make for all of its batch jobs.
  virtual std::vector<std::string> choices_in(const std::vector<std::string>& options) const = 0;
};

/// How options on a command line spell a choice: `--NAME=VALUE`, `--NAME VALUE`, `-LETTERVALUE`,
/// `-LETTER VALUE`.
struct ChoiceOption {
  std::string key;
  std::string name;  ///< empty: there is no long option
  char letter{0};    ///< 0: there is no short one
};

/// Of several of one key the last counts, as on the command line.
inline std::vector<std::string> choices_in(const std::vector<ChoiceOption>& known,
                                           const std::vector<std::string>& options) {
  std::map<std::string, std::string> found;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string_view option = options[i];
    for (const ChoiceOption& word : known) {
      const std::string name = "--" + word.name;
      const std::string letter{'-', word.letter};
      std::string_view value;
      if (!word.name.empty() && option.starts_with(name + "="))
        value = option.substr(name.size() + 1);
      else if (word.letter != 0 && option.size() > 2 && option.starts_with(letter))
        value = option.substr(2);
      else if (i + 1 < options.size() &&
               ((!word.name.empty() && option == name) || (word.letter != 0 && option == letter)))
        value = options[i + 1];
      while (value.starts_with(' ')) value.remove_prefix(1);
      if (!value.empty()) found[word.key] = value;
    }
  }
  std::vector<std::string> choices;
  choices.reserve(found.size());
  for (const auto& [key, value] : found) choices.emplace_back(key).append("=").append(value);
  return choices;
}

}  // namespace hpcbatch
