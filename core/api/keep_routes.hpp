// `/v1/keeps`: shapes of which pilots are kept, whatever there is for them to do.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

namespace hpcbatch {

/// `GET` lists them; `POST` keeps pilots of a shape until a time, or no longer.
void add_keeps(Routes& routes, Runtime& runtime);

}  // namespace hpcbatch
