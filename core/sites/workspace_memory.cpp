#include "sites/workspace_memory.hpp"

#include "wire/whole_file.hpp"

#include <spdlog/spdlog.h>

#include <filesystem>

namespace hpcbatch {

std::string workspace_memory(const std::string& home, const std::string& site) {
  return home + "/workspaces/" + site;
}

// A line with the file system, one with the workspace.

std::string remembered_file_system(const std::string& memory, const std::string& workspace) {
  const auto text = wire::read_file(memory, wire::Readers::OwnerOnly);
  const std::string end = "\n" + workspace + "\n";
  if (!text || !text->ends_with(end)) return {};
  return text->substr(0, text->size() - end.size());
}

void remember_file_system(const std::string& memory, const std::string& workspace,
                          const std::string& file_system) {
  std::error_code error;
  std::filesystem::create_directory(std::filesystem::path(memory).parent_path(), error);
  const auto written =
      wire::replace_file(memory, file_system + "\n" + workspace + "\n", wire::Readers::OwnerOnly);
  if (!written) spdlog::warn("{}", written.error().text);
}

}  // namespace hpcbatch
