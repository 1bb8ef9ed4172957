// `GET /v1/waits`: how long allocations wait in the queues of their batch systems.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

namespace hpcbatch {

/// Each shape of each site, with how long an allocation that is asked for now would wait and how
/// good such words were, and the allocations that wait.
void add_queue_waits(Routes& routes, Runtime& runtime);

}  // namespace hpcbatch
