// `/v1/readers`: programs that wait for what they have submitted say that they are there.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

namespace hpcbatch {

/// A reader is there while such a request of it is being held: the kernel closes the connection of
/// one that was killed, and one that is busy, or stopped, has to do nothing.
void add_readers(Routes& routes, Runtime& runtime);

}  // namespace hpcbatch
