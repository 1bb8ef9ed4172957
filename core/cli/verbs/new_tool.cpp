// `tools new`: the file of a tool to start from, in which each key that there may be is explained.
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/texts.hpp"
#include "documents/view.hpp"

#include <boost/json/object.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// `@` is the tool's name.
constexpr std::string_view kText =
    R"yaml(# The tool @: what its users may choose, which files it reads and writes, what it needs, its command.
# As it stands it writes the first lines of a text, and fails where there are none:
#
#   hpcbatch run --tool @ --input text=README.md --output start=start.txt --param lines=5
#
# `hpcbatch tools check @` says what is wrong with this file, `hpcbatch tools show @` what it takes.
# A comment with a key in it is a key that may be there.  What is no key is refused with its line.
tool: @                             # the name of this file without .yaml
version: 0.1.0                      # yours
summary: Writes the first lines of a text
plugin: command                     # `media`: needs may depend on what recordings and images are (docs/tools.md)

# --param NAME=VALUE.  One without `default` must be given.
parameters:
  lines: {type: integer, default: 10, description: How many}      # type: string (if not said), integer, number, boolean
  # mode: {default: fast, choices: [fast, careful], description: How}

# --input NAME=PATH.  They are looked at when the task is submitted, and again before it starts.
inputs:
  text: {description: A text}
  # more: {type: files, description: "A list of files: --input more=A --input more=B"}
  # model: {optional: true, description: May be left out}

# --output NAME=PATH.  They appear there all or none, when the command has exited 0.
outputs:
  start: {file: start.txt, description: Its first lines}          # file: what it is called while the task runs
  # notes: {optional: true, description: May be left out by the user and by the command}

# What one task needs: amounts, or expressions of numbers among the parameters, of NAME.size (bytes) and
# NAME.count of inputs.  K M G T are bytes, s m h d times; + - * / ^, ( ), a < b ? c : d, min, max, ceil, floor, round.
resources:
  cpus: 1
  memory: 100M + 2 * text.size
  time: 1m + text.size / 10M * 1s   # need and limit: the task is ended then
  # disk: 1G + text.size            # of the node
  # gpus: 1                         # or a kind: {a100: 1}
  # tags: [licence]                 # only pilots whose shape has these tags run it
  # output_limit: 10M               # of stdout and stderr, each

# environment: {MODE: "{mode}", OMP_NUM_THREADS: "1"}
# container: {image: /images/@.sif, binds: ['/data:/data:ro']}   # the command runs in it
# In place of a container, what is dear to load stays loaded: service: {kind: answer, command: [python3, '{tool_dir}/worker.py'], memory: 4G, requests: 100, idle: 10m, env: {NAME: VALUE}}
# split: {input: text, output: start, cut: a_tool, merge: another}   # for `hpcbatch split --tool @`; cut and merge may be left out

# The program and its arguments, one entry for one argument, no shell between: what a value holds is never
# looked at.  {name} is a parameter's value, an input's path (of an optional input that is not given the whole entry
# is left out; a list is an entry of its own), or where an output is to be written; {tool_dir} is this file's folder; {{ is a brace.
# A shell that is needed is named, and gets values as arguments of its own: never put {name} into its text.
# It must exit with something else than 0 where the output is not what was asked for.
command:
  - sh
  - -c
  - 'head -n "$1" < "$2" > "$3" || exit 1; [ -s "$3" ] && exit; echo "the text has no lines" >&2; exit 1'
  - sh
  - "{lines}"
  - "{text}"
  - "{start}"
)yaml";

std::string text_for(const std::string& name) {
  std::string text;
  for (const char c : kText) {
    if (c == '@')
      text += name;
    else
      text += c;
  }
  return text;
}

/// Not over a file that is there.
void write_new(const std::string& path, const std::string& text) {
  const auto fail = [&path](int error) {
    throw CommandError(kExitUsage,
                       fmt::format("cannot write {}: {}", show_text(path), std::strerror(error)));
  };
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) fail(errno);
  // Tools that others can write are refused, whatever the umask is.
  const bool is_whole = ::fchmod(file, 0644) == 0 && ::write(file, text.data(), text.size()) ==
                                                         static_cast<ssize_t>(text.size());
  const int error = errno;
  ::close(file);
  if (is_whole) return;
  ::unlink(path.c_str());
  fail(error);
}

}  // namespace

int perform(const NewToolCommand& command, const Session& /*session*/) {
  if (!is_word(command.name))
    throw CommandError(kExitUsage,
                       fmt::format("'{}' is no name of a tool: it is letters, digits, '_', '-' and "
                                   "'.', a letter or a digit first",
                                   show_text(command.name, 60)));
  std::error_code error;
  // Its folder alone: one above that is not there is mistyped.
  std::filesystem::create_directory(command.directory, error);
  const std::string path = command.directory + "/" + command.name + ".yaml";
  write_new(path, text_for(command.name));
  return show_answer(
      command.json, {{"file", path}},
      fmt::format(
          "{}\nnow: change it, have {} among `tool_path` of the configuration (which an engine "
          "reads when it starts), and: hpcbatch tools check {}\n",
          path, command.directory, command.name));
}

}  // namespace hpcbatch
