// `hpcbatch plugin new`: a project that builds, made from the texts of the kit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hpcbatch::plugin_kit {

struct NewProject {
  std::string kind;                 ///< tool, scheduler or transport
  std::string name;                 ///< of the plugin
  std::filesystem::path directory;  ///< new, or empty
};

/// Writes it; the files, in order.  `kit`: where a folder for each kind lies; `prefix`: where hpcbatch
/// is installed.  Throws std::invalid_argument with one sentence, and has then written nothing.
std::vector<std::filesystem::path> write_project(const NewProject& project,
                                                 const std::filesystem::path& kit,
                                                 const std::filesystem::path& prefix);

}  // namespace hpcbatch::plugin_kit
