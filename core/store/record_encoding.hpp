// Records of runs as bytes in columns of the store.
#pragma once

#include "records/usage.hpp"

#include <string>
#include <string_view>

namespace hpcbatch::store {

std::string encode(const records::Usage& usage);
/// What cannot be read counts as nothing.
records::Usage decode_usage(std::string_view bytes);

std::string encode(const records::Profile& profile);
/// What cannot be read is learned anew.
records::Profile decode_profile(std::string_view bytes);

}  // namespace hpcbatch::store
