// Values of the model as text in columns of the store.
#pragma once

#include "model/task.hpp"

#include <string>
#include <vector>

namespace hpcbatch::store {

std::string encode(const Needs& needs);
Needs decode_needs(const std::string& text);
std::string encode(const std::vector<Dependency>& dependencies);
std::vector<Dependency> decode_dependencies(const std::string& text);
std::string encode(const IndexSet& set);
IndexSet decode_indices(std::string_view text);

}  // namespace hpcbatch::store
