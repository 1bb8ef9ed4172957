// How a server is shown who we are: keys from files and from the agent, nothing that a person
// would have to type.
#pragma once

#include "session.hpp"

namespace hpcbatch {

Result<void> authenticate(Session& session, const SshSettings& settings, Deadline deadline);

}  // namespace hpcbatch
