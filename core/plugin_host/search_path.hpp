// Where plugins are looked for, and under which names.
#pragma once

#include "hpcbatch/abi.h"
#include "hpcbatch/result.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// One plugin found by name, and the files of that name further down the search path that it hides.
struct PluginFile {
  std::string name;
  std::filesystem::path path;
  std::vector<std::filesystem::path> hidden;
};

/// `schedulers`, `transports`, `tools` or `estimators`.
std::string_view folder_of(hpcbatch_plugin_kind kind);
/// `scheduler`, `transport`, `tool` or `estimator`; "kind N" for any other number.
std::string kind_name(unsigned kind);

/// The configuration's list, then $HPCBATCH_PLUGIN_PATH (separated by colons), then lib/hpcbatch
/// and libexec/hpcbatch beside the directory of `program`.
std::vector<std::filesystem::path> plugin_search_path(const std::vector<std::string>& configured,
                                                      std::string_view environment,
                                                      const std::filesystem::path& program);

/// Every plugin of a kind by name; looks at names only and opens nothing.
std::vector<PluginFile> find_plugins(const std::vector<std::filesystem::path>& search,
                                     hpcbatch_plugin_kind kind);

// Opens one shared object and hands out its descriptor; the only place that knows Boost.DLL.

/// Maps the file and finds its descriptor.  What was once mapped stays until the process ends, so
/// the pointer lives as long.  Nothing in the descriptor has been checked.
Result<const hpcbatch_plugin_descriptor*> open_library(const std::filesystem::path& file);

// Whose files we load as code: only root's and our own, where nobody else can write.

/// Asks the guard of trusted paths about a plugin before anything of it runs.  One sentence that says
/// what to do, or nothing.
std::optional<std::string> untrusted_plugin(const std::filesystem::path& file);

}  // namespace hpcbatch
