#include "submission.hpp"

#include "dialect.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

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

}  // namespace

CommandLine qsub(const Settings& settings, const AllocationRequest& request,
                 const std::string& script_path) {
  std::vector<std::string> arguments = resources(settings, request);
  arguments.push_back(script_path);
  // `-r n`: an allocation that ran again would come with a pilot that nobody asked for.
  arguments.insert(arguments.end(),
                   {"-N", request.name, "-j", "oe", "-o",
                    request.directory + "/" + request.name + ".out", "-r", "n", "-V"});
  if (!request.partition.empty()) arguments.insert(arguments.end(), {"-q", request.partition});
  arguments.insert(arguments.end(), request.options.begin(), request.options.end());
  return in_dialect(settings.dialect, kSubmit, arguments);
}

}  // namespace hpcbatch::pbs
