// Names under which a job's files lie in its own folder: safe to stand bare in a shell script, and
// all different.
#pragma once

#include <set>
#include <string>

namespace hpcbatch {

/// Made of letters, digits, `_`, `.`, `-`, beginning with a letter, digit or `_`; at most 120
/// bytes.  The last part of `path` stays as it is where it is such a name already, for templates
/// use it.
std::string staged_name(const std::string& path, std::set<std::string>& taken);

}  // namespace hpcbatch
