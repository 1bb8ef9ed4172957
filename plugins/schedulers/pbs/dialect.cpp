#include "dialect.hpp"

#include "hpcbatch/keys.hpp"

#include <algorithm>
#include <sstream>

namespace hpcbatch::pbs {
namespace {

/// A PBS of its own installer is in the path of login shells alone; its configuration says where it
/// is (pbs.conf(8): lines NAME=VALUE).
/// SLURM's scripts have no `--version`, and without a SLURM they say nothing but its errors; what
/// they are stands in their text.
constexpr const char* kTell = R"sh(
dialect=$1; shift
command -v qstat >/dev/null 2>&1 || {
  conf=${PBS_CONF_FILE:-/etc/pbs.conf}
  [ ! -r "$conf" ] || . "$conf"
  [ -z "$PBS_EXEC" ] || { PATH=$PATH:$PBS_EXEC/bin; export PATH; }
}
if [ -z "$dialect" ]; then
  if grep -q '^use Slurm' "$(command -v qstat)" 2>/dev/null; then
    dialect=slurm-torque
  else
    version=$(qstat --version 2>&1)
    case $version in
    *pbs_version*) dialect=openpbs ;;
    *[Vv]ersion:*) dialect=torque ;;
    *) echo "cannot tell which PBS this is, for 'qstat --version' says: $version" >&2; exit 127 ;;
    esac
  fi
fi
)sh";

/// Goes into an argument of qsub, where commas, colons and spaces have a meaning.
bool is_word(const std::string& text, const std::string& also_allowed) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || also_allowed.find(static_cast<char>(c)) != std::string::npos;
  });
}

std::string not_a_value(const std::string& text, const std::string& name) {
  return "'" + text + "' cannot be the value of '" + name + "'";
}

std::string read_dialect(const Keys& keys) {
  const auto text = keys.text("dialect");
  if (!text || std::find(kDialects.begin(), kDialects.end(), *text) != kDialects.end())
    return text.value_or("");
  keys.fail_with("dialect", "unknown dialect '" + *text +
                                "'; known are: openpbs (PBS Pro too), torque, slurm-torque "
                                "(SLURM's own qsub)");
}

std::string read_place(const Keys& keys) {
  const auto text = keys.text("place");
  if (!text) return {};
  if (text->empty()) keys.fail("place", "must be a text");
  if (!is_word(*text, ":=_-")) keys.fail_with("place", not_a_value(*text, "place"));
  return *text;
}

std::map<std::string, std::string> read_gpu_kinds(const Keys& keys) {
  std::map<std::string, std::string> kinds;
  for (const Keys::Entry& kind :
       keys.entries("gpu_kinds",
                    "a map such as {a100: gpu_model=A100}, from a kind of GPU to the resource that "
                    "asks for it")) {
    if (kind.text.empty()) Keys::fail(kind, "the value of '" + kind.name + "' must be a text");
    if (!is_word(kind.text, "=._-:")) Keys::fail(kind, not_a_value(kind.text, kind.name));
    kinds[kind.name] = kind.text;
  }
  return kinds;
}

}  // namespace

CommandLine in_dialect(const std::string& dialect, const std::string& script,
                       const std::vector<std::string>& arguments) {
  CommandLine command{.argv = {"sh", "-c", kTell + script, "sh", dialect}};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return command;
}

std::string without_echo(const std::string& text) {
  constexpr std::string_view kOutput = "and the output was:\n'";
  const auto begin = text.find(kOutput);
  return begin == std::string::npos ? text : text.substr(begin + kOutput.size());
}

std::string one_line(const std::string& text) {
  std::istringstream lines(without_echo(text));
  std::string joined;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(" \t"));
    for (const std::string_view prefix : {"qsub: ", "qstat: ", "qselect: ", "qdel: ", "pbsnodes: ",
                                          "sbatch: ", "error: ", "fatal: "}) {
      if (line.starts_with(prefix)) line.erase(0, prefix.size());
    }
    if (!line.empty() && line != "'") joined += (joined.empty() ? "" : "; ") + line;
  }
  if (joined.size() > 500) joined = joined.substr(0, 497) + "...";
  return joined;
}

Settings read_settings(const char* config_yaml) {
  const Keys keys(config_yaml, {"dialect", "place", "gpu_kinds"},
                  "what qsub is to be given belongs under 'options' of the site");
  return {read_dialect(keys), read_place(keys), read_gpu_kinds(keys)};
}

}  // namespace hpcbatch::pbs
