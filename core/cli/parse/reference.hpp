// What shells, man(1) and users of Snakemake are told of the verbs and their options, from the
// same table that reads them.
#pragma once

#include <string>
#include <string_view>

// What shells and man(1) are told of the verbs and their options, from the same table that reads them.

namespace CLI {
class App;
}

namespace hpcbatch {

/// `shell`: bash, zsh or fish; what it reads to complete a command line of `app`.  Throws
/// std::invalid_argument for any other.
std::string completion_for(const CLI::App& app, std::string_view shell);

/// hpcbatch(1), in the language of groff_man(7): the overview, then each verb as its `--help`.
std::string manual_page(const CLI::App& app, std::string_view overview);

}  // namespace hpcbatch
