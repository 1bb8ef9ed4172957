// The contract suites of the SDK, with the one plugin that is checked for their case.
#pragma once

#include "hpcbatch/abi.h"
#include "plugin_kit/check_plugin.hpp"

namespace hpcbatch::plugin_kit {

/// To be called before GoogleTest is initialised: which suite has a case, and which.  Throws with one
/// sentence where a tool's file is none.
void set_case(hpcbatch_plugin_kind kind, const CheckAsked& asked);
/// Makes an object of the plugin and throws it away; throws what that throws.
void make_one();

}  // namespace hpcbatch::plugin_kit
