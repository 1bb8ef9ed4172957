// Writes documents as PyYAML does: sorted keys, block style, types that PyYAML reads back as they
// were.
#pragma once

#include "documents/node.hpp"

#include <string>
#include <string_view>

namespace hpcbatch {

std::string python_yaml(const Node& node);

/// A scalar that every YAML reader takes for this text, whatever is in it.  Any bytes: what is no
/// valid UTF-8 is replaced.
Node text_node(std::string_view text);
Node integer_node(std::int64_t value);

}  // namespace hpcbatch
