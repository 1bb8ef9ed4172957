// Words of a command line -> a Command.
#pragma once

#include "cli/parse/command.hpp"

#include <string>
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
/// What `run`, `submit` and `split` say of a task.
void add_work_options(CLI::App& verb, WorkOptions& work);
void add_split_verb(CLI::App& app, Command& into);
void add_task_verbs(CLI::App& app, Command& into);
void add_inventory_verbs(CLI::App& app, Command& into);
void add_engine_verbs(CLI::App& app, Command& into);
void add_foresight_verbs(CLI::App& app, Command& into);
void add_plugin_verbs(CLI::App& app, Command& into);
void add_snakemake_verbs(CLI::App& app, Command& into);

}  // namespace detail
}  // namespace hpcbatch
