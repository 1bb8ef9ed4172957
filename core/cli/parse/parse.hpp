// Words of a command line -> a Command.
#pragma once

#include "cli/parse/command.hpp"

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// `words` without the program's name.  Throws CommandError with exit code 2, or 125 for `run`.
Command parse_command(const std::vector<std::string>& words);

namespace detail {

/// Each adds a family of verbs to `app` and writes to `into` what the user asked for; both must
/// outlive the parsing.
void add_work_verbs(CLI::App& app, Command& into);
/// What `run`, `submit` and `split` say of a task: the keys that have an option.
class Verb;
void add_work_options(Verb& verb, WorkOptions& work, bool is_submit = false);
/// Options of some of them, which say this here.
void add_needs(Verb& verb, WorkOptions& needs,
               const std::vector<std::pair<std::string_view, std::string>>& keys);
/// What waiting tasks can be told anew.
void add_update_options(Verb& verb, WorkOptions& work);
void add_split_verb(CLI::App& app, Command& into);
void add_task_verbs(CLI::App& app, Command& into);
void add_inventory_verbs(CLI::App& app, Command& into);
void add_engine_verbs(CLI::App& app, Command& into);
void add_foresight_verbs(CLI::App& app, Command& into);
void add_plugin_verbs(CLI::App& app, Command& into);
void add_snakemake_verbs(CLI::App& app, Command& into);

/// Before a value of --items that begins as options do, so that the parser takes it for a word.
inline constexpr char kItemMark = '\x01';

/// A path of the command line from the root on.  Throws std::invalid_argument.
std::string whole_path(const std::string& path);

/// The options of a verb in the order of its help, each with the variable that it fills; the variable
/// outlives the parsing.  What is said of one follows it: `.count("-n", most, "...").required()`.
class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(app) {}

  CLI::App& app() { return app_; }
  /// Of the options that follow.
  Verb& group(const char* name);
  Verb& flag(const std::string& names, bool& into, const std::string& says);
  Verb& json(bool& into) {
    return flag("--json", into, "one JSON object a line, with stable keys");
  }
  /// A text or a number as the library reads it.
  template <class Into>
  Verb& option(const std::string& names, const char* type, Into& into, const std::string& says) {
    return is(app_.add_option(names, into, says)->type_name(type));
  }
  /// A number from 1 up.
  template <class Number>
  Verb& count(const std::string& names, Number& into, const std::string& says,
              std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    return option(names, "N", into, says).check_count(most);
  }
  /// `store` takes the text, and throws std::invalid_argument where it is not well formed.
  Verb& read(const std::string& names, const std::string& type,
             const std::function<void(const std::string&)>& store, const std::string& says);
  template <class Into, class Read>
  Verb& value(const std::string& names, const char* type, Into& into, Read of,
              const std::string& says) {
    return read(
        names, type, [&into, of](const std::string& text) { into = of(text); }, says);
  }
  /// The same where it may be given several times, one value each.
  Verb& read_each(const std::string& names, const std::string& type,
                  const std::function<void(const std::string&)>& store, const std::string& says);
  template <class Into, class Read>
  Verb& values(const std::string& names, const char* type, std::vector<Into>& into, Read of,
               const std::string& says) {
    return read_each(
        names, type, [&into, of](const std::string& text) { into.push_back(of(text)); }, says);
  }
  template <class Into>
  Verb& path(const std::string& names, const char* type, Into& into, const std::string& says) {
    return value(names, type, into, whole_path, says);
  }
  Verb& required();
  Verb& excludes(const char* other);
  Verb& hidden();
  /// Once all is read, in their order; throws std::invalid_argument.
  void at_last(std::function<void()> check) { checks_.push_back(std::move(check)); }
  void end() const {
    for (const auto& check : checks_) check();
  }

 private:
  Verb& is(CLI::Option* option) {
    last_ = option;
    return *this;
  }
  Verb& check_count(std::int64_t most);

  CLI::App& app_;
  CLI::Option* last_{nullptr};
  std::vector<std::function<void()>> checks_;
};

/// A verb that becomes a Made, which `fill` gives its options.
template <class Made, class Fill>
CLI::App& add_verb(CLI::App& app, Command& into, const std::string& name, const std::string& says,
                   const std::string& footer, const Fill& fill) {
  auto made = std::make_shared<Made>();
  auto verb = std::make_shared<Verb>(*app.add_subcommand(name, says));
  verb->app().footer(footer);
  fill(*verb, *made);
  verb->app().callback([made, verb, &into] {
    // What an inner verb has said holds.
    if (!verb->app().get_subcommands().empty()) return;
    verb->end();
    into = *made;
  });
  return verb->app();
}

}  // namespace detail

// What is wrong with a command line, in words of ours: none of the parser's reach the user.

/// One sentence, with what was probably meant.  `words`: all that was typed.
std::string complaint_of(const CLI::App& app, const CLI::ParseError& error,
                         const std::vector<std::string>& words);
/// Of a first word that is no verb, as `kill` or `squeue`.
std::string complaint_of_verb(const std::string& word, const std::vector<std::string>& verbs);
/// An option with nothing behind it but another option, which the parser would take for its value.
std::optional<std::string> complaint_of_missing_value(const CLI::App& verb,
                                                      const std::vector<std::string>& words);
/// Whether a word behind --items is an option after all, or meant as one.
bool is_meant_as_option(const CLI::App& verb, const std::string& word);
/// `; see ...`, or ` See ...` behind a question.
std::string with_pointer(const std::string& sentence, const std::string& verb);

// How `--help` looks: within 80 columns.

class HelpText : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_description(const CLI::App* verb) const override;
  std::string make_footer(const CLI::App* verb) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_usage(const CLI::App* verb, std::string name) const override;
};

/// What stands behind an option's name: N, SIZE, a|b|c; empty where its own name says it.  The library's own text of it has
/// words of the parser.
std::string value_text(const CLI::Option& option);

/// What a file of tasks for `submit --file` may hold.
std::string task_file_help();

}  // namespace hpcbatch

// What shells and man(1) are told of the verbs and their options, from the same table that reads
// them.

namespace CLI {
class App;
}

namespace hpcbatch {

/// `shell`: bash, zsh or fish; what it reads to ask us for each word of a command line.
std::string completion_for(std::string_view shell);
/// What may come behind these words of a command line: a word, a tab and what it is, a line each.
/// Nothing where a file or another program's word comes.
std::string offers_after(const CLI::App& app, const std::vector<std::string>& words);

/// hpcbatch(1), in the language of groff_man(7): the overview, then each verb as its `--help`.
std::string manual_page(const CLI::App& app, std::string_view overview);

}  // namespace hpcbatch
