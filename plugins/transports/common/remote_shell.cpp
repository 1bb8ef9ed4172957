#include "remote_shell.hpp"

#include "hpcbatch/shell_quote.hpp"
#include "process.hpp"

#include <algorithm>
#include <charconv>
#include <random>

namespace hpcbatch {
namespace {

constexpr std::size_t kMostAround = 16u << 10;

int number_in(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// How much of the text's end may be the first part of `line`.
std::size_t beginning_at_end(std::string_view text, std::string_view line) {
  std::size_t length = std::min(text.size(), line.size() - 1);
  while (!text.ends_with(line.substr(0, length))) --length;
  return length;
}

void keep_the_end(std::string& text) {
  if (text.size() > kMostAround) text.erase(0, text.size() - kMostAround);
}

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
// A user's start files may put our own sbatch or qsub first in PATH (own_commands.hpp).
constexpr const char* kPrivate =
    "umask 077\nHPCBATCH_SLURM_REAL=1 HPCBATCH_PBS_REAL=1\n"
    "export HPCBATCH_SLURM_REAL HPCBATCH_PBS_REAL\n";

std::string exports(const std::map<std::string, std::string>& environment) {
  std::string text;
  for (const auto& [name, value] : environment)
    text += "export " + name + "=" + shell_quoted(value) + "\n";
  return text;
}

}  // namespace

Frame new_frame() {
  std::random_device random;
  std::string nonce;
  for (int word = 0; word < 4; ++word) {
    for (unsigned bits = random(), digit = 0; digit < 8; ++digit, bits >>= 4)
      nonce += "0123456789abcdef"[bits & 15];
  }
  return {nonce};
}

void FramedAnswer::received(Stream stream, std::string_view bytes) {
  Part& at = part(stream);
  at.pending.append(bytes);
  if (at.where == Where::Before && !look_for_begin(at)) return;
  if (at.where == Where::Within && !look_for_end(at)) return;
  at.around += at.pending;
  at.pending.clear();
  keep_the_end(at.around);
}

bool FramedAnswer::look_for_begin(Part& at) {
  const auto found = at.pending.find(begin_);
  const auto line_end = found == std::string::npos ? found : at.pending.find('\n', found);
  if (line_end == std::string::npos) {
    at.around = at.pending.substr(0, found);
    keep_the_end(at.around);
    if (at.pending.size() > kMostAround && found == std::string::npos) {
      at.pending.erase(0, at.pending.size() - kMostAround / 2);
    }
    return false;
  }
  at.around = at.pending.substr(0, found);
  group_ = number_in(std::string_view(at.pending).substr(found + begin_.size()));
  at.pending.erase(0, line_end + 1);
  at.where = Where::Within;
  return true;
}

bool FramedAnswer::look_for_end(Part& at) {
  const auto found = at.pending.find(end_);
  const std::size_t bytes =
      found == std::string::npos ? at.pending.size() - beginning_at_end(at.pending, end_) : found;
  at.kept.append(at.pending, 0, bytes);
  at.pending.erase(0, bytes);
  if (found == std::string::npos) return false;
  const auto line_end = at.pending.find('\n');
  if (line_end == std::string::npos) return false;
  exit_code_ = number_in(std::string_view(at.pending).substr(end_.size()));
  at.pending.erase(0, line_end + 1);
  at.where = Where::After;
  return true;
}

bool FramedAnswer::has_begun() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& at) { return at.where != Where::Before; });
}

bool FramedAnswer::is_whole() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const Part& at) { return at.where == Where::After; });
}

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

}  // namespace hpcbatch
