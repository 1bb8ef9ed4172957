// Base64 back to bytes: how the engine sends output that need not be text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// No value where the text is not base64 with padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace hpcbatch
