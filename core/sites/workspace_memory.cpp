#include "sites/workspace_memory.hpp"

#include "wire/whole_file.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>

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

namespace {

constexpr const char* kFirstWord = "hpcbatch-given-1";

std::string file_of(const std::string& workspace, const std::string& engine) {
  return workspace + "/given-" + engine;
}

}  // namespace

GivenIds read_given_ids(const std::string& workspace, const std::string& engine) {
  const auto text = wire::read_file(file_of(workspace, engine), wire::Readers::OwnerOnly);
  if (!text) return {};
  std::istringstream words(*text);
  std::string first;
  GivenIds given;
  if (!(words >> first >> given.highest >> given.starts) || first != kFirstWord) return {};
  return given;
}

void write_given_ids(const std::string& workspace, const std::string& engine,
                     const GivenIds& given) {
  std::error_code error;
  if (!std::filesystem::is_directory(workspace, error)) return;
  (void)wire::replace_file(file_of(workspace, engine),
                           fmt::format("{} {} {}\n", kFirstWord, given.highest, given.starts),
                           wire::Readers::OwnerOnly, false);
}

namespace {

using namespace std::chrono_literals;

constexpr Duration kYoung = 1h;
constexpr std::string_view kPrograms = "bin/hpcbatch-";

constexpr const char* kListScript = R"sh(
cd "$1" || exit
date +%s || exit
for folder in allocations logs outbox bin; do
  [ ! -d "$folder" ] || find "$folder" -maxdepth 1 -type f -exec stat -c '%s %Y %n' {} + 2>/dev/null
done
echo hbend
)sh";

/// "NAME" of "logs/NAME.0.17.log"; empty where it is no file of an allocation.
std::string allocation_of(const std::string& path) {
  const auto slash = path.find('/');
  const std::string_view folder = std::string_view(path).substr(0, slash);
  const std::string_view name = std::string_view(path).substr(slash + 1);
  const auto is = [&](std::string_view where, std::string_view ending) {
    return folder == where && name.ends_with(ending);
  };
  const bool is_known = is("allocations", ".out") || is("allocations", ".sh") ||
                        is("allocations", ".env") || is("allocations", ".pilot") ||
                        is("logs", ".log") || is("outbox", ".damaged");
  return is_known ? std::string(name.substr(0, name.find('.'))) : "";
}

enum class Use : std::uint8_t { NotOurs, Needed, Over };

Use use_of(const WorkspaceFile& file, const KeepRules& rules) {
  if (file.path.starts_with(kPrograms)) {
    const bool is_needed = rules.programs.contains(file.path) || rules.has_live;
    return is_needed ? Use::Needed : Use::Over;
  }
  const std::string name = allocation_of(file.path);
  if (name.empty() || !name.starts_with(rules.prefix)) return Use::NotOurs;
  return rules.needed.contains(name) || file.age < kYoung ? Use::Needed : Use::Over;
}

Error no_list(const std::string& why) {
  return {Error::Kind::Transient, "cannot list the workspace: " + why};
}

}  // namespace

CommandLine list_files_of(const std::string& workspace) {
  return {.argv = {"sh", "-c", kListScript, "sh", workspace}, .environment = {}, .input = {}};
}

Result<std::vector<WorkspaceFile>> read_listing(const CommandOutput& output) {
  if (output.timed_out) return no_list("no answer in time");
  if (output.exit_code != 0) {
    const std::string& said = output.standard_error;
    return no_list(said.substr(0, said.find('\n')));
  }
  std::istringstream lines(output.standard_output);
  std::int64_t now = 0;
  std::string line;
  if (!std::getline(lines, line) || !(std::istringstream(line) >> now))
    return no_list("half an answer");
  std::vector<WorkspaceFile> files;
  while (std::getline(lines, line)) {
    if (line == "hbend") return files;
    std::istringstream words(line);
    WorkspaceFile file;
    std::int64_t written = 0;
    if (!(words >> file.bytes >> written) || words.get() != ' ' || !std::getline(words, file.path))
      continue;
    file.age = std::chrono::seconds(now - written);
    files.push_back(std::move(file));
  }
  return no_list("half an answer");
}

Cleaning decide_cleaning(std::vector<WorkspaceFile> files, const KeepRules& rules) {
  Cleaning cleaning;
  std::stable_sort(files.begin(), files.end(),
                   [](const auto& one, const auto& other) { return one.age > other.age; });
  std::uint64_t all = 0;
  for (const WorkspaceFile& file : files) {
    if (use_of(file, rules) == Use::Over) all += file.bytes;
  }
  for (WorkspaceFile& file : files) {
    const Use use = use_of(file, rules);
    if (use == Use::NotOurs) continue;
    const bool is_too_much = all - cleaning.gone_bytes > rules.keep_limit;
    if (use == Use::Over && (file.age > rules.keep_for || is_too_much)) {
      cleaning.gone_bytes += file.bytes;
      cleaning.gone.push_back(std::move(file));
    } else {
      ++cleaning.kept_files;
      cleaning.kept_bytes += file.bytes;
    }
  }
  return cleaning;
}

}  // namespace hpcbatch
