// What is wrong with a command line, in words of ours: none of the parser's reach the user.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch
