#include "plugin_kit/new_project.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch::plugin_kit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 40;

/// A target of CMake, a file and a word of the configuration at once.
bool is_good_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() >= 'a' &&
         name.front() <= 'z' && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::string with(std::string text, std::string_view what, std::string_view instead) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size())
    text.replace(at, what.size(), instead);
  return text;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::invalid_argument(fmt::format("cannot read {}", file.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

void check(const NewProject& project, const fs::path& templates) {
  if (!is_good_name(project.name))
    throw std::invalid_argument(
        fmt::format("'{}' is no name of a plugin: it is small letters, digits and _, a letter "
                    "first, {} at most",
                    project.name, kLongestName));
  std::error_code error;
  if (!fs::is_directory(templates, error))
    throw std::invalid_argument(fmt::format(
        "there is no kit for a {} plugin ({}); there is one for tool, scheduler and transport",
        project.kind, templates.string()));
  if (fs::exists(project.directory, error) &&
      (!fs::is_directory(project.directory, error) || !fs::is_empty(project.directory, error)))
    throw std::invalid_argument(fmt::format("{} is there already; say another folder with --dir",
                                            project.directory.string()));
}

}  // namespace

std::vector<fs::path> write_project(const NewProject& project, const fs::path& kit,
                                    const fs::path& prefix) {
  const fs::path templates = kit / project.kind;
  check(project, templates);
  std::vector<std::pair<fs::path, std::string>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(templates)) {
    const auto filled = [&](const std::string& text) {
      return with(with(text, "@NAME@", project.name), "@PREFIX@", prefix.string());
    };
    // `NAME.cpp.in` becomes NAME.cpp.
    files.emplace_back(project.directory / filled(entry.path().stem().string()),
                       filled(text_of(entry.path())));
  }
  std::sort(files.begin(), files.end());
  std::error_code error;
  fs::create_directories(project.directory, error);
  std::vector<fs::path> written;
  for (const auto& [file, text] : files) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::invalid_argument(fmt::format("cannot write {}", file.string()));
    written.push_back(file);
  }
  return written;
}

}  // namespace hpcbatch::plugin_kit
