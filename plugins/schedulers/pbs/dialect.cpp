#include "dialect.hpp"

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

}  // namespace hpcbatch::pbs
