// Words of a command line -> a Command.
#pragma once

#include "cli/parse/command.hpp"

#include <CLI/App.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace hpcbatch {

/// `words` without the program's name.  Throws CommandError with exit code 2, or 125 for `run`.
Command parse_command(const std::vector<std::string>& words);

namespace detail {

/// Each adds a family of verbs to `app` and writes to `into` what the user asked for; both must
/// outlive the parsing.
void add_work_verbs(CLI::App& app, Command& into);
/// What `run`, `submit` and `split` say of a task: the keys that have an option.
void add_work_options(CLI::App& verb, WorkOptions& work, bool is_submit = false);
/// Options of some of them, which say this here.
void add_needs(CLI::App& verb, WorkOptions& needs,
               const std::vector<std::pair<std::string_view, std::string>>& keys);
void add_split_verb(CLI::App& app, Command& into);
void add_task_verbs(CLI::App& app, Command& into);
void add_inventory_verbs(CLI::App& app, Command& into);
void add_engine_verbs(CLI::App& app, Command& into);
void add_foresight_verbs(CLI::App& app, Command& into);
void add_plugin_verbs(CLI::App& app, Command& into);
void add_snakemake_verbs(CLI::App& app, Command& into);

}  // namespace detail
}  // namespace hpcbatch

namespace hpcbatch::detail {

// Adds flags to a verb such that a malformed value is refused with the flag's name.

/// Before a value of --items that begins as options do, so that the parser takes it for a word.
inline constexpr char kItemMark = '\x01';

/// One value; `store` throws std::invalid_argument where it is not well formed.
template <class Store>
CLI::Option* add_value(CLI::App& verb, const std::string& flag, const std::string& type,
                       Store store, const std::string& description) {
  const auto guarded = [flag, store](const std::string& text) {
    try {
      store(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(flag, error.what());
    }
  };
  return verb.add_option_function<std::string>(flag, guarded, description)->type_name(type);
}

/// A flag that may be given several times, one value each.
template <class Store>
CLI::Option* add_values(CLI::App& verb, const std::string& flag, const std::string& type,
                        Store store, const std::string& description) {
  const auto guarded = [flag, store](const std::vector<std::string>& texts) {
    try {
      for (const std::string& text : texts) store(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(flag, error.what());
    }
  };
  return verb.add_option_function<std::vector<std::string>>(flag, guarded, description)
      ->allow_extra_args(false)
      ->type_name(type);
}

/// The library's own prints the largest number that there is.
inline CLI::Validator above_zero() {
  return {[](const std::string& text) {
            const bool is_number =
                !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            const bool is_above = is_number && text.find_first_not_of('0') != std::string::npos;
            return std::string(is_above ? "" : "'" + text + "' is no number from 1 up");
          },
          ""};
}

inline void add_json_flag(CLI::App& verb, bool& into) {
  verb.add_flag("--json", into, "one JSON object a line, with stable keys");
}

}  // namespace hpcbatch::detail
