#include "batch/directives.hpp"

#include <array>

namespace hpcbatch::batch {
namespace {

using enum Fate;
constexpr auto kNone = Argument::None;
constexpr auto kNeeded = Argument::Needed;
constexpr auto kOptional = Argument::Optional;

constexpr std::string_view kOfPlacing = "hpcbatch places tasks on nodes itself";
constexpr std::string_view kOfJob = "it says something of the batch job alone, which is a pilot's";
constexpr std::string_view kNoChoice =
    "tasks do not choose nodes; say what they must have with --constraint, or leave it out";

constexpr std::array kDirectives{
    Directive{"account", 'A', kNeeded, Holds, "`--account`"},
    Directive{"acctg-freq", 0, kNeeded, LeftOut, kOfJob},
    Directive{"array", 'a', kNeeded, Holds, "`--array`, with `%limit`, steps, lists and index 0"},
    Directive{"batch", 0, kNeeded, LeftOut, kOfPlacing},
    Directive{"bb", 0, kNeeded, Refused,
              "there are no burst buffers; copy the files in the script"},
    Directive{"bbf", 0, kNeeded, Refused,
              "there are no burst buffers; copy the files in the script"},
    Directive{"begin", 'b', kNeeded, Holds, "`--begin`"},
    Directive{"chdir", 'D', kNeeded, Holds, "`--cwd`"},
    Directive{"cluster-constraint", 0, kNeeded, Refused, "say --site NAME for one of your sites"},
    Directive{"clusters", 'M', kNeeded, Refused, "say --site NAME for one of your sites"},
    Directive{"comment", 0, kNeeded, Holds, "shown where SLURM shows it"},
    Directive{"consolidate-segments", 0, kNone, LeftOut, kOfPlacing},
    Directive{"constraint", 'C', kNeeded, Holds, "`--constraint`"},
    Directive{"container", 0, kNeeded, Refused,
              "that is the folder of an OCI bundle; hpcbatch runs images: --container IMAGE"},
    Directive{"container-id", 0, kNeeded, Refused, "hpcbatch runs images: --container IMAGE"},
    Directive{"contiguous", 0, kNone, LeftOut, kOfPlacing},
    Directive{"core-spec", 'S', kNeeded, Refused,
              "leave it out: a pilot has the cores of its shape"},
    Directive{"cores-per-socket", 0, kNeeded, Refused, kNoChoice},
    Directive{"cpu-freq", 0, kNeeded, LeftOut, "frequencies are the node's"},
    Directive{"cpus-per-gpu", 0, kNeeded, Holds, "`--cpus`, for all GPUs"},
    Directive{"cpus-per-task", 'c', kNeeded, Holds, "`--cpus`, for all of --ntasks"},
    Directive{"deadline", 0, kNeeded, Holds, "`--deadline`"},
    Directive{"delay-boot", 0, kNeeded, LeftOut, kOfJob},
    Directive{"dependency", 'd', kNeeded, Holds,
              "all forms but `afterburstbuffer` and `expand`, of tasks of hpcbatch: `--after`, "
              "`--after-any`, `--after-each`, `--after-start`, `--after-failed`, `--singleton`; "
              "with `?` between them `--after-one`"},
    Directive{"distribution", 'm', kNeeded, LeftOut, kOfPlacing},
    Directive{"error", 'e', kNeeded, Holds, "`--stderr`, with SLURM's patterns"},
    Directive{"exclude", 'x', kNeeded, Refused, kNoChoice},
    Directive{"exclusive", 0, kOptional, Holds, "`--cpus all`: all of a node of its shape"},
    Directive{"export", 0, kNeeded, Holds, "`--export`"},
    Directive{"export-file", 0, kNeeded, Refused, "say --env NAME=VALUE for each"},
    Directive{"extra", 0, kNeeded, LeftOut, kOfJob},
    Directive{"extra-node-info", 'B', kNeeded, Refused, kNoChoice},
    Directive{"get-user-env", 0, kOptional, LeftOut, "your environment goes along"},
    Directive{"gid", 0, kNeeded, Refused, "a task runs as who submits it"},
    Directive{"gpu-bind", 0, kNeeded, LeftOut, "a task sees all its GPUs, and no others"},
    Directive{"gpu-freq", 0, kNeeded, LeftOut, "frequencies are the node's"},
    Directive{"gpus", 'G', kNeeded, Holds, "`--gpus`, with --nodes a part for each"},
    Directive{"gpus-per-node", 0, kNeeded, Holds, "`--gpus`"},
    Directive{"gpus-per-socket", 0, kNeeded, Refused, "say --gpus with the number of all"},
    Directive{"gpus-per-task", 0, kNeeded, Holds, "`--gpus`, for all of --ntasks"},
    Directive{"gres", 0, kNeeded, Holds,
              "`--gpus` for `gpu`, `gpu:2`, `gpu:a100:2`; others are refused"},
    Directive{"gres-flags", 0, kNeeded, LeftOut, "a task gets cpus near its GPUs anyhow"},
    Directive{"help", 'h', kNone, Refused, "that asks for a help text; remove it"},
    Directive{"hint", 0, kNeeded, LeftOut, "say --threads-per-core for one thread a core"},
    Directive{"hold", 'H', kNone, Holds, "`--hold`"},
    Directive{"ignore-pbs", 0, kNone, LeftOut, "beside #SBATCH lines those of PBS do not count"},
    Directive{"input", 'i', kNeeded, Holds, "`--stdin`, with SLURM's patterns"},
    Directive{"job-name", 'J', kNeeded, Holds, "`--name`"},
    Directive{"kill-on-invalid-dep", 0, kNeeded, LeftOut,
              "a task whose dependency can never be met ends at once, and says so"},
    Directive{"licenses", 'L', kNeeded, Refused,
              "say licences as `resources` of a task file, where the site has them"},
    Directive{"mail-type", 0, kNeeded, Holds,
              "`--notify mail:` for END and ALL, `--notify failed:mail:` for FAIL, TIME_LIMIT and "
              "INVALID_DEPEND; there are no mails at other times"},
    Directive{"mail-user", 0, kNeeded, Holds,
              "`--notify`, with --mail-type; you, if it is missing"},
    Directive{"mcs-label", 0, kNeeded, LeftOut, kOfJob},
    Directive{"mem", 0, kNeeded, Holds, "`--mem`; 0 is `--mem all`"},
    Directive{"mem-bind", 0, kNeeded, LeftOut, "say --cpu-bind numa for one node of memory"},
    Directive{"mem-per-cpu", 0, kNeeded, Holds, "`--mem`, for all cpus"},
    Directive{"mem-per-gpu", 0, kNeeded, Holds, "`--mem`, for all GPUs"},
    Directive{"mincpus", 0, kNeeded, Refused, "say --cpus-per-task"},
    Directive{"network", 0, kNeeded, LeftOut, kOfPlacing},
    Directive{"nice", 0, kOptional, Holds, "`--priority`, as much lower"},
    Directive{"no-kill", 'k', kOptional, LeftOut, kOfPlacing},
    Directive{"no-requeue", 0, kNone, Holds, "`--requeue=no`"},
    Directive{"nodefile", 'F', kNeeded, Refused, kNoChoice},
    Directive{"nodelist", 'w', kNeeded, Refused, kNoChoice},
    Directive{"nodes", 'N', kNeeded, Holds, "`--nodes`; of a range the first"},
    Directive{"ntasks", 'n', kNeeded, Holds, "`--cpus` for all of them, and `--ntasks`"},
    Directive{"ntasks-per-core", 0, kNeeded, LeftOut, kOfPlacing},
    Directive{"ntasks-per-gpu", 0, kNeeded, Refused, "say --ntasks"},
    Directive{"ntasks-per-node", 0, kNeeded, Holds, "`--cpus` for all of them, and `--ntasks`"},
    Directive{"ntasks-per-socket", 0, kNeeded, LeftOut, kOfPlacing},
    Directive{"oom-kill-step", 0, kOptional, LeftOut, "a task that runs out of memory ends whole"},
    Directive{"open-mode", 0, kNeeded, Holds, "`--open-mode`"},
    Directive{"output", 'o', kNeeded, Holds,
              "`--stdout`, with SLURM's patterns, and for errors too"},
    Directive{"overcommit", 'O', kNone, LeftOut, kOfPlacing},
    Directive{"oversubscribe", 's', kNone, LeftOut, "a task shares its node, never its cpus"},
    Directive{"parsable", 0, kNone, LeftOut, "what submit prints is the id alone"},
    Directive{"partition", 'p', kNeeded, Holds, "`--partition`"},
    Directive{"power", 0, kNeeded, LeftOut, kOfJob},
    Directive{"prefer", 0, kNeeded, LeftOut, "it would start without it as well"},
    Directive{"priority", 0, kNeeded, LeftOut, "say --priority for the order among your tasks"},
    Directive{"profile", 0, kNeeded, LeftOut, kOfJob},
    Directive{"propagate", 0, kOptional, LeftOut, "limits are the pilot's"},
    Directive{"qos", 'q', kNeeded, Holds, "`--qos`"},
    Directive{"quiet", 'Q', kNone, LeftOut, "submit prints the id alone"},
    Directive{"reboot", 0, kNone, Refused, "a pilot does not restart its node"},
    Directive{"requeue", 0, kNone, Holds, "`--requeue=yes`"},
    Directive{"reservation", 0, kNeeded, Holds, "`--reservation`"},
    Directive{"resv-ports", 0, kOptional, LeftOut, kOfPlacing},
    Directive{"segment", 0, kNeeded, LeftOut, kOfPlacing},
    Directive{
        "signal", 0, kNeeded, Holds,
        "`NAME@SECONDS` before the end of the time: for what `srun` starts, with `B:` for the "
        "script"},
    Directive{"sockets-per-node", 0, kNeeded, Refused, kNoChoice},
    Directive{"spread-job", 0, kNone, LeftOut, kOfPlacing},
    Directive{"stepmgr", 0, kNone, LeftOut, kOfJob},
    Directive{"switches", 0, kNeeded, LeftOut, kOfPlacing},
    Directive{"test-only", 0, kNone, Holds, "`--dry-run`"},
    Directive{"thread-spec", 0, kNeeded, Refused,
              "leave it out: a pilot has the cores of its shape"},
    Directive{"threads-per-core", 0, kNeeded, Holds, "`--threads-per-core`"},
    Directive{"time", 't', kNeeded, Holds, "`--time`; 0 and `UNLIMITED` are no limit"},
    Directive{"time-min", 0, kNeeded, Holds, "`--time-request`"},
    Directive{"tmp", 0, kNeeded, Holds, "`--disk`"},
    Directive{"tres-bind", 0, kNeeded, LeftOut, "a task sees all its GPUs, and no others"},
    Directive{"tres-per-task", 0, kNeeded, Refused, "say --cpus-per-task and --gpus-per-task"},
    Directive{"uid", 0, kNeeded, Refused, "a task runs as who submits it"},
    Directive{"usage", 0, kNone, Refused, "that asks for a help text; remove it"},
    Directive{"use-min-nodes", 0, kNone, LeftOut, kOfPlacing},
    Directive{"verbose", 'v', kNone, LeftOut, "submit says what holds"},
    Directive{"version", 'V', kNone, Refused, "that asks for a version; remove it"},
    Directive{"wait", 'W', kNone, Holds, "`--wait`"},
    Directive{"wait-all-nodes", 0, kNeeded, LeftOut, kOfPlacing},
    Directive{"wckey", 0, kNeeded, LeftOut, kOfJob},
    Directive{"wrap", 0, kNeeded, Refused, "that belongs to a command line without a script"},
    Directive{"x11", 0, kOptional, Refused, "there are no windows; leave it out"},
};

}  // namespace

std::span<const Directive> slurm_directives() {
  return kDirectives;
}

}  // namespace hpcbatch::batch
