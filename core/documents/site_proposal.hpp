// A site's entry in the configuration as it could be, from what its batch system says that there
// is.
#pragma once

#include "hpcbatch/survey.hpp"
#include "model/site.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

struct SiteProposal {
  std::string yaml;                ///< one item of `sites:`; empty where nothing can be proposed
  std::vector<std::string> notes;  ///< what was left out and why, a sentence each
};

/// Keeps what `site` says of all but shapes and limits.  A shape for each kind of node of each
/// partition that is open; its text is read back by `parse_site` without complaint.
SiteProposal propose_site(const Site& site, const Survey& survey);

// A site's entry put into a configuration that people have written.

/// `item`: one of `sites:`, as propose_site gives it.  All else stays as it is, comments too.
/// Nothing where the list is written such that a line cannot be added to it, as `sites: [...]`.
std::optional<std::string> with_site(const std::string& configuration, const std::string& item);

}  // namespace hpcbatch
