// A site's entry put into a configuration that people have written.
#pragma once

#include <optional>
#include <string>

namespace hpcbatch {

/// `item`: one of `sites:`, as propose_site gives it.  All else stays as it is, comments too.
/// Nothing where the list is written such that a line cannot be added to it, as `sites: [...]`.
std::optional<std::string> with_site(const std::string& configuration, const std::string& item);

}  // namespace hpcbatch
