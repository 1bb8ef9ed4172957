// Variables that a site's configuration gives to every command there.
#pragma once

#include "hpcbatch/keys.hpp"
#include "process.hpp"

#include <string_view>

namespace hpcbatch {

bool is_variable_name(std::string_view name);

/// Of the key `environment`; throws as Keys does.
Environment read_environment(const Keys& keys);

}  // namespace hpcbatch
