// Which tasks of a submission stand where.
#pragma once

#include "model/index_set.hpp"

#include <boost/json/object.hpp>

#include <functional>
#include <optional>
#include <string>

namespace hpcbatch {

/// Asks the engine for that target.
using AskEngine = std::function<boost::json::object(const std::string& target)>;

/// Those of a submission that the engine lists where it is asked so: `state=failed`, `printed=1`.
IndexSet indices_where(const AskEngine& ask, const std::string& submission,
                       const std::string& question);
/// `12.3-9` of submission 12; nothing where it is another's.
std::optional<IndexSet> indices_of(const std::string& id, const std::string& submission);

}  // namespace hpcbatch
