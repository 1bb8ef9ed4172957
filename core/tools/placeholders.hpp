// `{name}` in a text of a tool's file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// The names within braces; `{{` and `}}` stand for braces themselves.  Throws
/// std::invalid_argument where a brace has no partner.
std::vector<std::string> find_placeholders(std::string_view text);

/// Puts the values in, once: what a value holds is not looked at again.  Each name must be in
/// `values`.
std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values);

}  // namespace hpcbatch
