// `hpcbatch plugin list`: what plugins were found where, and what was refused.
#pragma once

#include <boost/json/object.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hpcbatch::plugin_kit {

/// {"searched": [folder...], "plugins": [{"kind", "name", "version" or "refused", "path", "hides": [path...]}]}
boost::json::object list_plugins(const std::vector<std::filesystem::path>& search);
std::string list_text(const boost::json::object& list);

}  // namespace hpcbatch::plugin_kit
