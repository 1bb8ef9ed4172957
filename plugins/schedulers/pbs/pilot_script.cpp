#include "submission.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::pbs {
namespace {

/// A login shell has usually defined `module`; a batch script of sh has not.
constexpr const char* kProfile =
    "command -v module >/dev/null 2>&1 || [ ! -r /etc/profile ] || . /etc/profile\n";

/// A batch job may have the plain path of its node, in which pbsdsh is not (pbs.conf(8): lines
/// NAME=VALUE).
constexpr const char* kFindPbsdsh = R"sh(
if [ -z "${SLURM_JOB_ID:-}" ] && ! command -v pbsdsh >/dev/null 2>&1; then
  hb_conf=${PBS_CONF_FILE:-/etc/pbs.conf}
  [ ! -r "$hb_conf" ] || . "$hb_conf"
  [ -z "${PBS_EXEC:-}" ] || PATH=$PATH:$PBS_EXEC/bin
  command -v pbsdsh >/dev/null 2>&1 || {
    echo "hpcbatch: there is no pbsdsh in $PATH, and no PBS_EXEC in $hb_conf that says where; \
pilots of several nodes need it: set PATH under 'environment' of the site's transport" >&2
    exit 127
  }
fi
)sh";

/// What the batch job was given, for nodes to which pbsdsh hands on nothing; in a file, for
/// arguments are seen by everybody there.
constexpr const char* kHandOn = R"sh(
( umask 077
  for hb_name in ${HPCBATCH_HANDED_ON:-}; do
    eval "hb_value=\${$hb_name-}"
    printf '%s=' "$hb_name"
    printf '%s\n' "$hb_value" | sed "s/'/'\\\\''/g; s/^/'/; s/\$/'/"
    printf 'export %s\n' "$hb_name"
  done >"$hb_environment" )
)sh";

/// One pbsdsh for each pilot, so that one that ends does not end the others. The node file names a
/// host once for each of its slots, and `-n` counts slots. In a batch job of SLURM there is no
/// pbsdsh; its srun knows the ranks.
constexpr const char* kStartPilots = R"sh(
trap : TERM
hb_pids=
if [ -n "${SLURM_JOB_ID:-}" ]; then
  srun --export=ALL --propagate=NONE --nodes="$hb_nodes" --ntasks="$hb_nodes" --ntasks-per-node=1 \
    --cpus-per-task="$hb_cpus" --mpi=none --wait=0 --kill-on-bad-exit=0 \
    /bin/sh -c "$hb_pilot" sh '' &
  hb_pids=$!
else
  hb_slot=0; hb_rank=0; hb_hosts=' '
  while read -r hb_host; do
    case $hb_hosts in
    *" $hb_host "*) ;;
    *)
      pbsdsh -n "$hb_slot" -- /bin/sh -c "$hb_pilot" sh "$hb_rank" </dev/null &
      hb_pids="$hb_pids $!"; hb_rank=$((hb_rank + 1)); hb_hosts="$hb_hosts$hb_host " ;;
    esac
    hb_slot=$((hb_slot + 1))
  done <"$PBS_NODEFILE"
fi
)sh";

/// At the end of a batch job, or when it is deleted, the shell and the pilots all get TERM. The
/// shell must stay, or the batch system kills the pilots before they have said goodbye.
constexpr const char* kWaitForPilots = R"sh(hb_code=0
for hb_pid in $hb_pids; do
  wait "$hb_pid"; hb_one=$?
  while kill -0 "$hb_pid" 2>/dev/null; do wait "$hb_pid"; hb_one=$?; done
  [ "$hb_one" = 0 ] || hb_code=$hb_one
done
rm -f -- "$hb_environment"
exit "$hb_code"
)sh";

/// PBS starts in the home directory, and qsub has no word for another one that all understand.
std::string surroundings(const AllocationRequest& request) {
  std::string text = "cd " + shell_quoted(request.directory) + " || exit\n";
  if (!request.setup.empty()) text += kProfile;
  for (const std::string& line : request.setup) text += line + "\n";
  return text;
}

}  // namespace

std::string batch_script(const AllocationRequest& request) {
  std::string text = "#!/bin/sh\n# Allocation " + request.name + " of hpcbatch.\n";
  const std::string pilot = "exec " + shell_quoted(request.pilot) + "\n";
  if (request.nodes == 1) {
    return text + surroundings(request) + "HPCBATCH_NODE_RANK=0; export HPCBATCH_NODE_RANK\n" +
           pilot;
  }
  // pbsdsh hands on neither directory nor environment: each node sets itself up. Without a rank
  // the pilot takes SLURM's.
  const std::string environment = shell_quoted(request.directory + "/" + request.name + ".env");
  const std::string on_each_node =
      "\n[ -z \"$1\" ] || [ ! -r " + environment + " ] || . " + environment + "\n" +
      surroundings(request) +
      "[ -z \"$1\" ] || { HPCBATCH_NODE_RANK=$1; export HPCBATCH_NODE_RANK; }\n" + pilot;
  const auto cpus = static_cast<long>(std::ceil(std::max(request.cpus, 1.0)));
  return text + "hb_nodes=" + std::to_string(request.nodes) + " hb_cpus=" + std::to_string(cpus) +
         "\nhb_environment=" + environment + "\nhb_pilot=" + shell_quoted(on_each_node) +
         kFindPbsdsh + kHandOn + kStartPilots + kWaitForPilots;
}

}  // namespace hpcbatch::pbs
