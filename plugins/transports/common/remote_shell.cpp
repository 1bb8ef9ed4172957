#include "remote_shell.hpp"

#include "batch_variables.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <algorithm>
#include <array>

namespace hpcbatch {
namespace {

constexpr const char* kPlainPath = "/usr/local/bin:/usr/bin:/bin";

/// Of a user's environment nothing else.
std::vector<std::string> wanted() {
  std::vector<std::string> names{"PATH"};
  names.insert(names.end(), kBatchVariables.begin(), kBatchVariables.end());
  return names;
}

// sshd makes each command the leader of a session; its group is what a kill must reach, and what
// the watcher belongs to, which so needs no number.  The shell's own remarks ("Killed") are no part
// of the command's output.
constexpr const char* kFrame = R"sh(watch() {
  exec >/dev/null 2>&1 </dev/null 3<&- 4>&-
  sleep "$limit" & sleeper=$!
  trap 'kill $sleeper' TERM
  wait $sleeper || return
  kill_others "$group"
  kill -s KILL 0
}
main() {
  exec 3<&0 4>&2 2>/dev/null
  group=$$
  read -r pid name state parent group rest < /proc/self/stat
  printf '%s\n' "$begin $group" >&4 || exit
  printf '%s\n' "$begin $group" || exit
  watch & watcher=$!
  (body) <&3 2>&4 3<&- 4>&-
  code=$?
  kill $watcher
  printf '%s\n' "$end $code"
  printf '%s\n' "$end $code" >&4
}
main
)sh";

// A shell with job control, which start files may switch on, gives each command a group of its own;
// the session they have in common (proc(5): the fields of stat behind the name).
constexpr const char* kKillOthers = R"sh(kill_others() {
  for one in /proc/[0-9]*; do
    read -r rest 2>/dev/null < "$one/stat" || continue
    of=${rest##*) }
    of=${of#* * }
    its_group=${of%% *}
    of=${of#* }
    [ "${of%% *}" != "$1" ] || [ "$its_group" = "$1" ] || kill -s KILL "${one#/proc/}"
  done 2>/dev/null
}
)sh";

// What commands there make, a batch system's files among them, is as private as what the engine
// makes here.
constexpr const char* kPrivate = "umask 077\n";

std::string exports(const std::map<std::string, std::string>& environment) {
  std::string text;
  for (const auto& [name, value] : environment)
    text += "export " + name + "=" + shell_quoted(value) + "\n";
  return text;
}

bool is_plain(char c) {
  return (c >= ' ' && c <= '~') || c == '\n' || c == '\t';
}

}  // namespace

std::string starter(std::size_t script_size, InputAfterScript after, FarEnvironment environment) {
  // No character here means different things to sh, csh and fish.
  std::string text = "exec ";
  if (environment == FarEnvironment::Minimal) {
    text +=
        "/usr/bin/env -i HOME=\"$HOME\" USER=\"$USER\" LC_ALL=C PATH=" + std::string(kPlainPath) +
        " ";
  }
  text += "/bin/sh -c 'eval \"$(";
  // Most readers take more of a pipe than they were asked for.
  text += after == InputAfterScript::Yes
              ? "dd bs=1 count=" + std::to_string(script_size) + " 2>/dev/null"
              : "cat";
  return text + ")\"'";
}

std::string framed(const Frame& frame, const std::string& body, std::chrono::milliseconds limit) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limit).count() + 1;
  return "limit=" + std::to_string(seconds) + " begin='" + frame.begin() + "' end='" + frame.end() +
         "'\nbody() {\n" + body + "\n}\n" + kKillOthers + kFrame;
}

std::string command_script(const Frame& frame, const CommandLine& command,
                           const std::map<std::string, std::string>& environment,
                           std::chrono::milliseconds limit) {
  return framed(frame, kPrivate + exports(environment) + "exec " + shell_quoted(command.argv),
                limit);
}

std::string stream_script(const Frame& frame, const CommandLine& command,
                          const std::map<std::string, std::string>& environment) {
  return std::string("main() {\n") + kPrivate + exports(environment) + "printf '%s\\n' '" +
         frame.begin() + "' || exit\nexec " + shell_quoted(command.argv) +
         " 2>/dev/null\n}\nmain\n";
}

std::string kill_script(const Frame& frame, int group, std::chrono::milliseconds limit) {
  const std::string number = std::to_string(group);
  return framed(frame, "kill -s KILL -- -" + number + "\nkill_others " + number, limit);
}

std::string environment_script(const Frame& frame, std::chrono::milliseconds limit) {
  const std::string mark = frame.nonce + "-environment";
  std::string names;
  for (const std::string& name : wanted()) names += " " + name;
  const std::string show = "printf \"%s\\n\" " + mark + "; for n in" + names +
                           "; do eval \"v=\\${$n-}\"; [ -z \"$v\" ] || printf \"%s\\n\" "
                           "\"$n=$v\"; done; printf \"%s\\n\" " +
                           mark;
  // csh knows -l only by itself.
  return framed(frame,
                "H=" + shell_quoted(show) +
                    "; export H\n"
                    "s=${SHELL:-/bin/sh}\n"
                    "case $s in\n"
                    "*csh) exec \"$s\" -c 'if (-r /etc/csh.login) source /etc/csh.login; "
                    "if (-r ~/.login) source ~/.login; exec /bin/sh -c \"$H\"' </dev/null ;;\n"
                    "*) exec \"$s\" -lc 'exec /bin/sh -c \"$H\"' </dev/null ;;\n"
                    "esac",
                limit);
}

std::optional<std::map<std::string, std::string>> read_environment(const Frame& frame,
                                                                   std::string_view output) {
  const std::string mark = frame.nonce + "-environment\n";
  const auto from = output.find(mark);
  const auto to = output.rfind(mark);
  if (from == std::string_view::npos || from == to) return std::nullopt;
  const std::vector<std::string> names = wanted();
  std::map<std::string, std::string> environment;
  std::string_view rest = output.substr(from + mark.size(), to - from - mark.size());
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = line.substr(0, equals);
    if (std::find(names.begin(), names.end(), name) != names.end())
      environment.emplace(name, line.substr(equals + 1));
  }
  return environment;
}

std::string print_text(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return "printf %s " + shell_quoted(text);
  std::string coded;
  coded.reserve(text.size() * 2);
  for (const char c : text) {
    if (is_plain(c) && c != '\\') {
      coded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    coded += "\\0";
    for (const int shift : {6, 3, 0}) coded += static_cast<char>('0' + ((byte >> shift) & 7));
  }
  return "printf %b " + shell_quoted(coded);
}

std::string quoted_path(const std::string& path) {
  return shell_quoted(path.starts_with('-') ? "./" + path : path);
}

}  // namespace hpcbatch
