// `{name}` in a text of a tool's file.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// The names within braces, without `:q` or `:raw`; `{{` and `}}` stand for braces themselves.  Throws
/// std::invalid_argument where a brace has no partner.
std::vector<std::string> find_placeholders(std::string_view text);

/// Puts the values in, once: what a value holds is not looked at again.  Each name must be in
/// `values`.  `{name:q}` is put in quotes for a shell.
std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values);

/// Each name that is one as the characters that `misplaced_text` knows; what is none cannot hold more
/// than a word.
std::string mark_placeholders(std::string_view text,
                              const std::function<bool(const std::string& name)>& is_one);

}  // namespace hpcbatch
