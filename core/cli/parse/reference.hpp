// What shells and man(1) are told of the verbs and their options, from the same table that reads
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
