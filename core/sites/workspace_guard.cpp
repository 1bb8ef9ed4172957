#include "sites/workspace_guard.hpp"

#include <fmt/format.h>

#include <string_view>

namespace hpcbatch {
namespace {

// An administrator may have made the workspace itself for its user.  The last line says that
// nothing was cut off.
constexpr const char* kLook = R"(me=$(id -u) || exit 1
for part in '' /allocations /logs /outbox /work /bin; do
  at=$1$part
  [ -d "$at" ] || continue
  if [ "$part" ]; then
    find -H "$at" -prune '(' ! -user "$me" -o -perm -0002 ')' -exec echo others {} ';'
  else
    find -H "$at" -prune '(' ! -user "$me" ! -user 0 -o -perm -0002 ')' -exec echo others {} ';'
  fi
  find -H "$at" -prune -perm -0020 -exec echo group {} ';'
done
bare=yes
for part in allocations logs outbox work bin; do [ ! -e "$1/$part" ] || bare=; done
[ ! "$bare" ] || echo bare
at=$1
while [ ! -e "$at" ] && [ "$at" != / ]; do at=$(dirname "$at"); done
echo file_system $(stat -f -c '%T %i' "$at" 2>/dev/null)
echo looked)";

/// Kind and number, or of one in memory the kind alone.
std::string_view lasting(std::string_view file_system) {
  const std::string_view kind = file_system.substr(0, file_system.find(' '));
  return kind == "tmpfs" || kind == "ramfs" ? kind : file_system;
}

}  // namespace

CommandLine look_at_workspace(const std::string& workspace) {
  return {.argv = {"sh", "-c", kLook, "sh", workspace}, .environment = {}, .input = {}};
}

std::optional<WorkspaceFinding> read_workspace(const CommandOutput& output) {
  WorkspaceFinding finding;
  std::string_view rest = output.standard_output;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line == "looked") return finding;
    if (line == "bare") finding.is_bare = true;
    for (const auto& [word, place] :
         {std::pair{std::string_view("others "), &finding.others},
          std::pair{std::string_view("group "), &finding.group},
          std::pair{std::string_view("file_system "), &finding.file_system}}) {
      if (line.starts_with(word) && place->empty()) *place = line.substr(word.size());
    }
  }
  return std::nullopt;
}

std::optional<std::string> refusal_of_bare(const WorkspaceFinding& finding,
                                           const std::string& before,
                                           const std::string& workspace) {
  if (!finding.is_bare || before.empty() || finding.file_system.empty()) return std::nullopt;
  if (lasting(finding.file_system) == lasting(before)) return std::nullopt;
  return fmt::format(
      "nothing is left of the workspace {0}, and it would be on another file system than before; "
      "is "
      "that not mounted? Where it is to be made anew, say so by 'mkdir -p {0}/outbox' there",
      workspace);
}

std::string refusal_of(const WorkspaceFinding& finding) {
  return fmt::format(
      "cannot use the workspace: {} there is not yours alone, and who writes into it has programs "
      "run as you; it must belong to you and must not be writable by all ('chmod o-w')",
      finding.others);
}

}  // namespace hpcbatch
