#include "cli/parse/script.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace hpcbatch {
namespace {

// Its own arguments, before the interpreter's words: the facts, the signal, when, and how many words.
constexpr std::size_t kText = 2, kFile = 3, kFacts = 4, kCount = 7, kWords = 8;

/// What differs from task to task.  What the user has set stays.
constexpr const char* kBatchRun = R"sh(
hpcbatch_set() { eval "[ -n \"\${$1+x}\" ]" || eval "export $1=\"\$2\""; }
if [ -z "${HPCBATCH_BATCH_NUMBER-}" ]; then
  echo "hpcbatch: the engine gave this task no number, which its script would ask for" >&2; exit 1
fi
hpcbatch_facts=$1; hpcbatch_signal=$2; hpcbatch_after=$3; hpcbatch_words=$4; shift 4
hpcbatch_cpus=${HPCBATCH_CPUS%.*}; [ "${hpcbatch_cpus:-0}" -gt 0 ] || hpcbatch_cpus=1
hpcbatch_node=$(uname -n); hpcbatch_node=${hpcbatch_node%%.*}
hpcbatch_array=$((2000000000 + ${HPCBATCH_TASK_ID%%.*}))
hpcbatch_own=${TMPDIR:?the task has no folder of its own}/.hpcbatch
mkdir -p "$hpcbatch_own" || exit 1
hpcbatch_slurm() {
  hpcbatch_script=slurm_script
  hpcbatch_set SLURM_JOB_ID "$HPCBATCH_BATCH_NUMBER"
  hpcbatch_set SLURM_JOBID "$HPCBATCH_BATCH_NUMBER"
  if [ -n "${HPCBATCH_TASK_INDEX-}" ]; then
    hpcbatch_set SLURM_ARRAY_JOB_ID "$hpcbatch_array"
    hpcbatch_set SLURM_ARRAY_TASK_ID "$HPCBATCH_TASK_INDEX"
  fi
  hpcbatch_set SLURM_CPUS_ON_NODE "$hpcbatch_cpus"
  hpcbatch_set SLURM_JOB_CPUS_PER_NODE "$hpcbatch_cpus"
  case $hpcbatch_facts in
    *c*) hpcbatch_set SLURM_CPUS_PER_TASK "$((hpcbatch_cpus * ${SLURM_NNODES:-1} / ${SLURM_NTASKS:-1}))" ;;
  esac
  hpcbatch_set SLURM_TASKS_PER_NODE "${SLURM_NTASKS:-$((hpcbatch_cpus / ${SLURM_CPUS_PER_TASK:-1}))}"
  case $hpcbatch_facts in
    *m*) ;;
    *) [ -z "${HPCBATCH_MEM_MB-}" ] || hpcbatch_set SLURM_MEM_PER_NODE "$HPCBATCH_MEM_MB" ;;
  esac
  hpcbatch_set SLURM_JOB_NODELIST "$hpcbatch_node"
  hpcbatch_set SLURM_NODELIST "$hpcbatch_node"
  hpcbatch_set SLURMD_NODENAME "$hpcbatch_node"
  if [ -z "${HPCBATCH_NODES_FOLDER-}" ]; then
    hpcbatch_set HYDRA_LAUNCHER fork
    hpcbatch_set HYDRA_RMK user
    hpcbatch_set I_MPI_HYDRA_BOOTSTRAP fork
    hpcbatch_set I_MPI_HYDRA_RMK user
  fi
  hpcbatch_set SLURM_NODEID 0
  hpcbatch_set SLURM_PROCID 0
  hpcbatch_set SLURM_LOCALID 0
  hpcbatch_set SLURM_GTIDS 0
  hpcbatch_set SLURM_TASK_PID $$
  hpcbatch_set SLURM_JOB_PARTITION "${HPCBATCH_SITE-}"
  hpcbatch_set SLURM_CLUSTER_NAME "${HPCBATCH_SITE-}"
  hpcbatch_set SLURM_JOB_START_TIME "$(date +%s)"
  [ -z "${HPCBATCH_DEADLINE-}" ] || hpcbatch_set SLURM_JOB_END_TIME "$HPCBATCH_DEADLINE"
  hpcbatch_set SLURM_TMPDIR "$TMPDIR"
  [ "${HPCBATCH_ATTEMPT:-1}" -le 1 ] || hpcbatch_set SLURM_RESTART_COUNT $((HPCBATCH_ATTEMPT - 1))
  [ -n "${HPCBATCH_GPUS-}" ] || return 0
  hpcbatch_set SLURM_JOB_GPUS "$HPCBATCH_GPUS"
  hpcbatch_set SLURM_STEP_GPUS "$HPCBATCH_GPUS"
  hpcbatch_set SLURM_GPUS_ON_NODE "$(echo "$HPCBATCH_GPUS" | tr , '\n' | wc -l | tr -d ' ')"
}
hpcbatch_pbs() {
  hpcbatch_script=$hpcbatch_array.hpcbatch.SC
  if [ -n "${HPCBATCH_TASK_INDEX-}" ]; then
    hpcbatch_set PBS_JOBID "$hpcbatch_array[$HPCBATCH_TASK_INDEX].hpcbatch"
    hpcbatch_set PBS_ARRAY_ID "$hpcbatch_array[].hpcbatch"
    hpcbatch_set PBS_ARRAY_INDEX "$HPCBATCH_TASK_INDEX"
    hpcbatch_set PBS_ARRAYID "$HPCBATCH_TASK_INDEX"
  else
    hpcbatch_set PBS_JOBID "$HPCBATCH_BATCH_NUMBER.hpcbatch"
  fi
  hpcbatch_set NCPUS "$hpcbatch_cpus"
  hpcbatch_set PBS_NCPUS "$hpcbatch_cpus"
  hpcbatch_set PBS_NP "$((hpcbatch_cpus * ${PBS_NUM_NODES:-1}))"
  hpcbatch_set PBS_NUM_PPN "$hpcbatch_cpus"
  hpcbatch_set PBS_QUEUE "${HPCBATCH_SITE-}"
  hpcbatch_set PBS_NODENUM 0
  hpcbatch_set PBS_TASKNUM 1
  hpcbatch_set PBS_JOBDIR "${HOME:-$PWD}"
  hpcbatch_at=0
  while [ $hpcbatch_at -lt "${HPCBATCH_MPIPROCS:-1}" ]; do
    echo "$hpcbatch_node"; hpcbatch_at=$((hpcbatch_at + 1))
  done > "$hpcbatch_own/nodes" || exit 1
  hpcbatch_set PBS_NODEFILE "$hpcbatch_own/nodes"
}
case $hpcbatch_facts in
  p*) hpcbatch_pbs ;;
  *) hpcbatch_slurm ;;
esac
hpcbatch_file=$hpcbatch_own/$hpcbatch_script
printf %s "$hpcbatch_text" > "$hpcbatch_file" && chmod 700 "$hpcbatch_file" || exit 1
unset HPCBATCH_MPIPROCS
case $hpcbatch_signal,$hpcbatch_facts in
  ,*) ;;
  *t*) export SLURM_HPCBATCH_SIGNAL="$hpcbatch_signal@$(($(date +%s) + hpcbatch_after))" ;;
  *) (exec < /dev/null > /dev/null 2>&1; sleep "$hpcbatch_after"; kill -s "$hpcbatch_signal" $$) & ;;
esac
hpcbatch_at=0
for hpcbatch_word do
  shift; set -- "$@" "$hpcbatch_word"; hpcbatch_at=$((hpcbatch_at + 1))
  [ $hpcbatch_at -ne "$hpcbatch_words" ] || set -- "$@" "$hpcbatch_file"
done
exec "$@"
)sh";

/// The text of the script, from its variables.
constexpr const char* kTakeText =
    "hpcbatch_text=$HPCBATCH_SCRIPT; unset HPCBATCH_SCRIPT; hpcbatch_at=2; "
    "while eval \"[ -n \\\"\\${HPCBATCH_SCRIPT_$hpcbatch_at+x}\\\" ]\"; do "
    "eval \"hpcbatch_text=\\$hpcbatch_text\\$HPCBATCH_SCRIPT_$hpcbatch_at; "
    "unset HPCBATCH_SCRIPT_$hpcbatch_at\"; hpcbatch_at=$((hpcbatch_at + 1)); done; ";

/// From a variable, so that the command stays short where it is listed.
const std::string& run_batch() {
  static const std::string kRun =
      std::string(kTakeText) +
      "hpcbatch_run=$HPCBATCH_RUN; unset HPCBATCH_RUN; eval \"$hpcbatch_run\"";
  return kRun;
}

std::string facts_of(const BatchRun& run) {
  std::string facts(1, static_cast<char>(run.system));
  if (run.says_cpus) facts += 'c';
  if (run.says_memory_otherwise) facts += 'm';
  if (run.signals_steps) facts += 't';
  return facts;
}

/// How many words the interpreter has.
std::ptrdiff_t words_of_interpreter(const std::vector<std::string>& command) {
  const std::size_t words = number_in<std::size_t>(command[kCount]).value_or(0);
  return static_cast<std::ptrdiff_t>(std::min(words, command.size() - kWords));
}

}  // namespace

std::vector<std::string> text_variables(const std::string& text, const std::string& file) {
  // What the system takes as one variable (MAX_ARG_STRLEN of Linux), and as all of them, with room
  // for others (a quarter of the usual stack).
  constexpr std::size_t kLargestPiece = std::size_t{120} << 10, kLargest = std::size_t{1} << 20;
  if (text.size() > kLargest)
    throw std::invalid_argument(file + " has " + std::to_string(text.size()) +
                                " bytes, and a script may have 1 MB; let it read its data from a "
                                "file, or submit it as a command: hpcbatch submit -- " +
                                file);
  std::vector<std::string> variables;
  for (std::size_t begin = 0; variables.empty() || begin < text.size();) {
    std::size_t end = std::min(text.size(), begin + kLargestPiece);
    // Within no letter of UTF-8.
    while (end < text.size() && end > begin + 1 && (text[end] & 0xC0) == 0x80) --end;
    std::string name = "HPCBATCH_SCRIPT";
    if (!variables.empty()) name.append("_").append(std::to_string(variables.size() + 1));
    variables.push_back(std::move(name.append("=").append(text, begin, end - begin)));
    begin = end;
  }
  return variables;
}

const std::string& run_text() {
  static const std::string kRun = std::string(kTakeText) + "eval \"$hpcbatch_text\"";
  return kRun;
}

std::string batch_run_variable() {
  return std::string("HPCBATCH_RUN=") + kBatchRun;
}

std::vector<std::string> batch_command(const BatchRun& run, const std::string& file,
                                       const std::vector<std::string>& interpreter,
                                       const std::vector<std::string>& arguments) {
  std::vector<std::string> command{
      "/bin/sh", "-c", run_batch(), file, "", "", "", std::to_string(interpreter.size())};
  set_run(command, run);
  command.insert(command.end(), interpreter.begin(), interpreter.end());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

bool is_set_by_run(BatchSystem system, std::string_view name) {
  if (!name.starts_with(system == BatchSystem::Slurm ? "SLURM" : "PBS")) return false;
  const std::string line = "hpcbatch_set " + std::string(name) + " ";
  return std::string_view(kBatchRun).find(line) != std::string_view::npos;
}

bool is_batch_command(const std::vector<std::string>& command) {
  return command.size() > kWords && command[kText] == run_batch();
}

void set_run(std::vector<std::string>& command, const BatchRun& run) {
  command[kFacts] = facts_of(run);
  command[kFacts + 1] = run.signal;
  command[kFacts + 2] = run.signal_after;
}

std::vector<std::string> without_batch(const std::vector<std::string>& command) {
  const auto begin = command.begin() + kWords;
  std::vector<std::string> shown(begin, begin + words_of_interpreter(command));
  const std::vector<std::string> script = script_and_arguments(command);
  shown.insert(shown.end(), script.begin(), script.end());
  return shown;
}

std::vector<std::string> script_and_arguments(const std::vector<std::string>& command) {
  std::vector<std::string> shown{command[kFile]};
  shown.insert(shown.end(), command.begin() + kWords + words_of_interpreter(command),
               command.end());
  return shown;
}

}  // namespace hpcbatch
