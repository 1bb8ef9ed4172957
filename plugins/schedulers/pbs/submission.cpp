#include "../common/submit_answer.hpp"
#include "dialect.hpp"
#include "hpcbatch/shell_quote.hpp"
#include "pbs.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string_view>

namespace hpcbatch::pbs {
namespace {

/// SLURM's qsub takes the last `-l` alone, and warns of every `-S`.
/// OpenPBS would have a login shell read the name of a script, and that shell has no trap: told to
/// end it is gone at once, and the rest of the batch job is killed. A command is run by itself.
/// `-f`: without it qsub leaves a process behind that submits what comes next, and one that has
/// lost its server answers unclearly.
/// What the transport's environment has is meant for its batch jobs too. `-V` hands it on, but not
/// that of OpenPBS 23.06, which hands on nothing: there each variable is named, and qsub itself
/// quotes the values. The last `-v` alone counts, so a configured one is joined with ours. Which
/// they are is said to the script, for pbsdsh hands on nothing either.
constexpr const char* kSubmit = R"sh(
openpbs=$1 place=$2 walltime=$3 torque=$4 slurm=$5 script=$6; shift 6
HPCBATCH_HANDED_ON=
while read -r line; do
  case $line in 'export '*=*|'declare -x '*=*) line=${line%%=*}; line=${line##* } ;; *) continue ;; esac
  case $line in
  ''|[0-9]*|*[!A-Za-z0-9_]*) ;;
  HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|_|PBS_O_*|PBS_JOB*|PBS_NODE*|HPCBATCH_HANDED_ON) ;;
  *)
    eval "value=\${$line-}"
    case $value in *'
'*) ;; *) HPCBATCH_HANDED_ON="$HPCBATCH_HANDED_ON${HPCBATCH_HANDED_ON:+ }$line" ;; esac ;;
  esac
done <<END
$(export -p)
END
export HPCBATCH_HANDED_ON
names=HPCBATCH_HANDED_ON
for name in $HPCBATCH_HANDED_ON; do names=$names,$name; done
if [ "$dialect" = openpbs ]; then
  left=$#
  while [ "$left" -gt 0 ]; do
    left=$((left - 1))
    case $1 in
    -v)
      if [ "$left" -gt 0 ]; then names=$names,$2; shift 2; left=$((left - 1)); else shift; fi ;;
    -v*) names=$names,${1#-v}; shift ;;
    *) word=$1; shift; set -- "$@" "$word" ;;
    esac
  done
  set -- -v "$names" "$@"
fi
case $dialect in
openpbs)
  exec qsub -f -l "select=$openpbs" ${place:+-l "place=$place"} \
    ${walltime:+-l "walltime=$walltime"} "$@" -- /bin/sh "$script" ;;
torque) exec qsub -S /bin/sh -l "$torque${walltime:+,walltime=$walltime}" "$@" "$script" ;;
*) exec qsub -l "$slurm${walltime:+,walltime=$walltime}" "$@" "$script" ;;
esac
)sh";

struct Gpus {
  std::uint32_t count{0};
  std::string kinds;    ///< ":gpu_model=A100", or a property of Torque's nodes
  std::string openpbs;  ///< ":ngpus=2:gpu_model=A100", ":gpu_a100=2"
};

Gpus gpus_of(const Settings& settings, const AllocationRequest& request) {
  Gpus gpus;
  std::uint32_t by_ngpus = 0;
  std::string words;
  for (const auto& [kind, count] : request.gpus) {
    gpus.count += count;
    const auto known = settings.gpu_kinds.find(kind);
    const bool is_known = known != settings.gpu_kinds.end();
    if (is_known) gpus.kinds += ":" + known->second;
    if (is_known && known->second.find('=') == std::string::npos) {
      gpus.openpbs += ":" + known->second + "=" + std::to_string(count);
      continue;
    }
    by_ngpus += count;
    if (is_known) words += ":" + known->second;
  }
  if (by_ngpus > 0) gpus.openpbs += ":ngpus=" + std::to_string(by_ngpus) + words;
  return gpus;
}

std::string hours(std::chrono::seconds time) {
  const long all = time.count();
  if (all <= 0) return "";
  char text[40];
  std::snprintf(text, sizeof text, "%02ld:%02ld:%02ld", all / 3600, all / 60 % 60, all % 60);
  return text;
}

/// What is asked for in the words of each dialect, as the arguments of `kSubmit`.
std::vector<std::string> resources(const Settings& settings, const AllocationRequest& request) {
  const auto cpus = std::to_string(static_cast<long>(std::ceil(std::max(request.cpus, 1.0))));
  const std::string nodes = std::to_string(request.nodes);
  const std::uint64_t megabytes = (request.memory + (1u << 20) - 1) >> 20;
  const Gpus gpus = gpus_of(settings, request);
  const std::string count = std::to_string(gpus.count);

  std::string chunk = nodes + ":ncpus=" + cpus;
  std::string torque = "nodes=" + nodes + ":ppn=" + cpus;
  // With `ppn` SLURM would spread the slots unevenly.
  std::string slurm = "nodes=" + nodes + ":ppn=1";
  if (gpus.count > 0) {
    chunk += gpus.openpbs;
    torque += ":gpus=" + count + gpus.kinds;
    slurm += ":gpus=" + count;  // it would take a kind for a host
  }
  slurm += ",mppdepth=" + cpus;
  if (megabytes > 0) {
    chunk += ":mem=" + std::to_string(megabytes) + "mb";
    torque += ",mem=" + std::to_string(megabytes * request.nodes) + "mb";  // of the whole job
    slurm += ",mem=" + std::to_string(megabytes) + "mb";
  }
  // Else two chunks may come to lie on one node.
  const std::string place =
      settings.place.empty() && request.nodes > 1 ? "scatter" : settings.place;
  return {chunk, place, hours(request.walltime), torque, slurm};
}

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

using submit_answer::has_one_of;
using submit_answer::kSignalled;

// Parts of the texts of OpenPBS, Torque and SLURM, in lower case, and the numbers of OpenPBS's
// errors (15000 and more), of which an exit code keeps what is left modulo 256.

// What the server says to a host or a user that it never takes anything from.
constexpr std::array<std::string_view, 1> kUnwelcome{"access from host not allowed"};
// Nobody was reached.
constexpr std::array<std::string_view, 9> kNoContact{
    "cannot connect to",      "could not connect to",     "unable to connect to",
    "connection refused",     "(connect failure)",        "no route to host",
    "network is unreachable", "no permission to connect", "unknown host"};
// The request may have reached the server.
constexpr std::array<std::string_view, 8> kUnclear{
    "failed to save job",    "timeout",         "end of file",          "premature end", "protocol",
    "communication failure", "connection lost", "internal server error"};
constexpr std::array<std::string_view, 8> kLimit{
    "maximum number of jobs", "max number of jobs",           "would exceed queue",
    "would exceed complex",   "would exceed server",          "would exceed limit",
    "per-user limit",         "exceeds queue limit on number"};
// "script file:": it had just been written, so a file system is away.
constexpr std::array<std::string_view, 13> kTransient{
    "script file:",          "queue is not enabled", "queue not enabled",   "not accepting",
    "shutting down",         "server is down",       "no free connections", "no server to connect",
    "connection table full", "temporarily",          "floating license",    "licenses are",
    "license is invalid"};

// The numbers of PBSE_PROTOCOL, PBSE_INTERNAL, PBSE_SYSTEM, PBSE_DISPROTO.
constexpr std::array kUnclearCodes{15031, 15011, 15010, 15056};
// PBSE_MAXQUED, PBSE_ENTLIMCT, PBSE_ENTLIMRESC.
constexpr std::array kLimitCodes{15046, 15142, 15143};
// PBSE_QUNOENB, PBSE_NOCONNECTS, PBSE_NOSERVER, PBSE_RESCUNAV, PBSE_SVRDOWN, PBSE_CONNFULL,
// PBSE_TRYAGAIN.
constexpr std::array kTransientCodes{15021, 15033, 15034, 15044, 15060, 15117, 15208};

template <std::size_t N>
bool is_one_of(int exit_code, const std::array<int, N>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [&](int number) { return number % 256 == exit_code; });
}

template <std::size_t N>
std::string without_lines_of(const std::string& text,
                             const std::array<std::string_view, N>& phrases) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!has_one_of(line, phrases)) kept += line + "\n";
  }
  return kept;
}

Refusal classify(const CommandOutput& output) {
  const std::string text =
      lower_case(output.standard_error + "\n" + without_echo(output.standard_output));
  constexpr int kSignals = 24;  // beyond them lie the numbers of PBS
  const int code = output.exit_code;
  const bool was_signalled = code > kSignalled && code < kSignalled + kSignals;
  if (output.timed_out || code <= 0 || was_signalled) return Refusal::Unclear;
  if (text.find("cannot tell which pbs") != std::string::npos) {
    return text.find("not found") == std::string::npos ? Refusal::Transient : Refusal::Permanent;
  }
  // Of a client that tried twice: the first time may have been enough.
  const std::string answered = without_lines_of(text, kNoContact);
  if (has_one_of(answered, kUnclear) || has_one_of(answered, submit_answer::kUnclear))
    return Refusal::Unclear;
  if (has_one_of(text, kUnwelcome)) return Refusal::Permanent;
  if (has_one_of(text, kNoContact)) return Refusal::Transient;
  if (has_one_of(text, kLimit) || has_one_of(text, submit_answer::kLimit))
    return has_one_of(text, submit_answer::kPerJob) ? Refusal::Permanent : Refusal::Limit;
  if (has_one_of(text, kTransient) || has_one_of(text, submit_answer::kPassing))
    return Refusal::Transient;
  const bool qsub_spoke =
      text.find("qsub: ") != std::string::npos || text.find("sbatch: ") != std::string::npos;
  if (qsub_spoke && is_one_of(code, kUnclearCodes)) return Refusal::Unclear;
  if (qsub_spoke && is_one_of(code, kLimitCodes)) return Refusal::Limit;
  if (qsub_spoke && is_one_of(code, kTransientCodes)) return Refusal::Transient;
  const bool is_usage = text.find("usage: qsub") != std::string::npos;
  // A hook of the site's own speaks with qsub's voice too.
  return qsub_spoke || submit_answer::is_absent(code) || is_usage ? Refusal::Permanent
                                                                  : Refusal::Unclear;
}

/// "1234", "1234.server", "1234.server:15051" of one that listens elsewhere
bool is_number(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0) return false;
  if (end == text.size()) return true;
  constexpr std::string_view kHost =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";
  return text[end] == '.' && end + 1 < text.size() &&
         text.find_first_not_of(kHost, end) == std::string_view::npos;
}

std::optional<std::string> job_number_in(const std::string& line) {
  return is_number(line) ? std::optional(line) : std::nullopt;
}

}  // namespace

CommandLine Pbs::submit(const AllocationRequest& request, const std::string& script_path) const {
  std::vector<std::string> arguments = resources(settings_, request);
  arguments.push_back(script_path);
  // `-r n`: an allocation that ran again would come with a pilot that nobody asked for.
  arguments.insert(arguments.end(),
                   {"-N", request.name, "-j", "oe", "-o",
                    request.directory + "/" + request.name + ".out", "-r", "n", "-V"});
  if (!request.partition.empty()) arguments.insert(arguments.end(), {"-q", request.partition});
  arguments.insert(arguments.end(), request.options.begin(), request.options.end());
  return in_dialect(settings_.dialect, kSubmit, arguments);
}

/// With one pilot on each node.
std::string Pbs::script(const AllocationRequest& request) const {
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

/// A number alone is success. A refusal counts as one only where nothing can have been accepted.
std::variant<std::string, SubmitRefused> Pbs::read_submit(const CommandOutput& output) const {
  return submit_answer::read(
      output,
      {.program = "qsub", .number_in = job_number_in, .one_line = one_line, .classify = classify});
}

}  // namespace hpcbatch::pbs
