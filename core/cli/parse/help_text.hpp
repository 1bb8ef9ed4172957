// How `--help` looks: within 80 columns.
#pragma once

#include <CLI/Formatter.hpp>

#include <string>

namespace hpcbatch {

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
