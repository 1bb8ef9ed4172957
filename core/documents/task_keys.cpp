#include "documents/task_keys.hpp"

#include "documents/texts.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

using Type = TaskKey::Type;

constexpr std::string_view kNeeds = "Needs", kEnvironment = "Environment",
                           kOrder = "Order and retries", kTool = "Tool", kFiles = "Files";

constexpr TaskKey::More kNotPython{.python = "-"};
constexpr TaskKey::More kOnlySubmit{.only_submit = true};
constexpr TaskKey::More kOrAll{.all = true};
constexpr TaskKey::More python(std::string_view keyword) {
  return {.python = keyword};
}
/// `field`: its number in `Start`, of what the pilot alone acts on.
constexpr TaskKey::More on_pilot(std::uint32_t field) {
  return {.field = field};
}
constexpr TaskKey::More choice(std::string_view words, std::uint32_t field = 0) {
  return {.words = words, .field = field};
}
constexpr TaskKey::More from_to(std::int64_t least, std::int64_t most, std::uint32_t field = 0,
                                std::string_view keyword = {}) {
  return {.python = keyword, .least = least, .most = most, .field = field};
}

// Read by tests/ready/task_docs too.
constexpr std::array kKeys{
    TaskKey{"command", Type::CommandWords, "[fit, --data, \"{}\"]",
            "program and arguments; for shell syntax write [sh, -c, \"A | B\"]", "", "", "",
            kNotPython},
    TaskKey{"tool", Type::Word, "ina_speech_segmenter", "run this tool instead of a command", "",
            "--tool NAME", kTool},
    TaskKey{"parameters", Type::Values, "{K: V}", "set a parameter of the tool", "", "--param K=V",
            kTool},
    TaskKey{"name", Type::Text, "fit",
            "a name for lists, and for `after` of other tasks in the file", "", "--name NAME",
            kOrder},
    TaskKey{"kind", Type::Text, "bwa_map", "kind of task; `report` sums up tasks of one kind",
            "the tool, the name, the program", "--kind NAME", kOrder},
    TaskKey{"after", Type::Ids, "[prepare]", "start when all of these have succeeded", "",
            "--after ID", kOrder},
    TaskKey{"after_any", Type::Ids, "[prepare]",
            "start when all of these have ended, however they ended", "", "--after-any ID", kOrder},
    TaskKey{"after_each", Type::Ids, "[fit]",
            "start each task when the task of the same index has succeeded", "", "--after-each ID",
            kOrder, kOnlySubmit},
    TaskKey{"after_start", Type::Ids, "[prepare, fit+10m]",
            "start when all of these have started; with +10m, ten minutes after that", "",
            "--after-start ID[+TIME]", kOrder, kOnlySubmit},
    TaskKey{"after_failed", Type::Ids, "[fit]",
            "start when all of these have ended and at least one has failed", "",
            "--after-failed ID", kOrder, kOnlySubmit},
    TaskKey{"after_one", Type::Flag, "false",
            "start as soon as one of the tasks named above is where it should be", "false",
            "--after-one", kOrder, kOnlySubmit},
    TaskKey{"singleton", Type::Flag, "false",
            "start when all earlier tasks of the same name have ended; run one task of an array at "
            "a time",
            "false", "--singleton", kOrder, kOnlySubmit},
    TaskKey{"begin", Type::Moment, "2026-01-31T18:00",
            "do not start before this time, e.g. 18:30, tomorrow, now+90minutes", "at once",
            "--begin WHEN", kOrder},
    TaskKey{"deadline", Type::Moment, "2026-01-31T18:00",
            "end the task as failed if it cannot end before this time", "none", "--deadline WHEN",
            kOrder},
    TaskKey{"requeue", Type::Flag, "true",
            "run the task again if its node or pilot dies; `no`: never start it twice, except for "
            "`retries`",
            "true", "--requeue yes|no", kOrder},
    TaskKey{"requeue_exit", Type::Whole, "85",
            "a task that exits with this code has saved its state: run it again, which costs no "
            "retry",
            "none", "--requeue-exit CODE", kOrder, from_to(1, 255)},
    TaskKey{
        "retry_mem", Type::Factor, "1.5x",
        "a retry after the task ran out of memory gets so many times as much, up to the largest "
        "shape",
        "1x; on this machine alone 1.5x", "--retry-mem FACTOR", kOrder},
    TaskKey{"retry_time", Type::Factor, "2x",
            "a retry after the time limit gets so many times as much time", "1x",
            "--retry-time FACTOR", kOrder},
    TaskKey{"grace", Type::TimeSpan, "30s", "time between TERM and KILL when the task must end",
            "30s after the time limit, else 5s", "--grace DURATION", kOrder, on_pilot(37)},
    TaskKey{"signal", Type::Signal, "TERM@2m",
            "send this signal so long before the time limit or the pilot's end", "none",
            "--signal NAME[@TIME]", kOrder, on_pilot(38)},
    TaskKey{"notify", Type::WordList, "[mail:me@example.org]",
            "tell this target when the whole submission has ended: mail:ADDRESS, command:/PROGRAM, "
            "https://HOST/PATH; with failed: before it, only if a task failed; `none`; may be "
            "repeated",
            "the configuration's", "--notify WHAT", kOrder},
    TaskKey{"array", Type::Range, "1-100%20", "one task for each index; at most 20 at once", "", "",
            "", kNotPython},
    TaskKey{"numbered", Type::Flag, "false",
            "give each task a number like a batch job's: {number} in paths, $HPCBATCH_BATCH_NUMBER",
            "", "", "", kNotPython},
    TaskKey{"items", Type::ItemList, "[a.wav, b.wav]",
            "one task for each: {} in the command, {1} {2} where they are lists, {NAME} where they "
            "are maps",
            "", "", "", kNotPython},
    TaskKey{"columns", Type::WordList, "[sample, lambda]",
            "names for the columns of items: {sample}"},
    TaskKey{"item_texts", Type::ItemTexts, "[...]", "the value of {} if items are maps", "", "", "",
            kNotPython},
    TaskKey{"follows", Type::Ids, "[12]", "skip the items that succeeded in these submissions", "",
            "", "", kNotPython},
    TaskKey{"cpus", Type::Cpus, "2", "processors, e.g. 2 or 0.5; `all`: a whole node's", "1",
            "--cpus N", kNeeds, kOrAll},
    TaskKey{"memory", Type::Size, "8G",
            "memory the task may use; exceeding it ends the task; `all`: a whole node's",
            "the share of its cpus", "--mem SIZE", kNeeds, kOrAll},
    TaskKey{"disk", Type::Size, "10G", "scratch space", "none", "--disk SIZE", kNeeds},
    TaskKey{"gpus", Type::Gpus, "1",
            "GPUs: 2, a100:2, either kind 'a100|h100:2', or a share of one 0.25", "none",
            "--gpus N|KIND:N", kNeeds},
    TaskKey{"gpu_memory", Type::Size, "40G", "use only kinds of GPU with at least this much memory",
            "any; implies 1 GPU", "--gpu-memory SIZE", kNeeds},
    TaskKey{"gpu_capability", Type::Capability, "8.0",
            "use only kinds of GPU with at least this compute capability", "any",
            "--gpu-capability N.N", kNeeds},
    TaskKey{"one_of", Type::Ways, "[{gpus: 1, cpus: 4}, {cpus: 16}]",
            "alternatives, best first: 'gpus=1,cpus=4; cpus=16'; keys: cpus, mem, disk, gpus, "
            "gpu-memory, gpu-capability",
            "none", "--one-of NEEDS", kNeeds},
    TaskKey{"time", Type::TimeSpan, "1h30m", "time the task needs; exceeding it ends the task",
            "none", "--time DURATION", kNeeds},
    TaskKey{"time_request", Type::TimeSpan, "10m",
            "start the task where this much time is left, although its limit may be longer",
            "its limit", "--time-request DURATION", kNeeds},
    TaskKey{"estimate", Type::Choice, "use",
            "use records of earlier tasks of its kind: off, advise (warn), use (fill in and reduce "
            "needs)",
            "the site's", "--estimate WORD", kNeeds, choice("off advise use")},
    TaskKey{"cpu_bind", Type::Choice, "scatter",
            "bind to cpus: compact (close together), scatter, numa (one memory node), none; always "
            "near its GPU",
            "compact", "--cpu-bind WORD", kNeeds, choice("compact scatter numa none", 30)},
    TaskKey{"threads_per_core", Type::Whole, "1", "threads used of each core; the others stay idle",
            "all", "--threads-per-core N", kNeeds, from_to(1, 8, 31)},
    TaskKey{"resources", Type::Amounts, "{licences/x: 1}", "amounts that a site defines", "", "",
            "", kNotPython},
    TaskKey{"nodes", Type::Whole, "2",
            "nodes that the task gets at once; cpus, memory and GPUs are those of each", "1",
            "--nodes N", kNeeds, from_to(1, 10'000)},
    TaskKey{
        "ntasks", Type::Whole, "8",
        "processes that the command starts on all nodes together (MPI); without cpus each has 1",
        "a process for each cpu", "--ntasks N", kNeeds, from_to(1, 1'000'000)},
    TaskKey{"ntasks_per_node", Type::Whole, "4", "the same, of each node", "",
            "--ntasks-per-node N", kNeeds, from_to(1, 100'000)},
    TaskKey{"site", Type::Word, "NAME", "run only at this site", "", "--site NAME", kNeeds},
    TaskKey{"not_sites", Type::WordList, "[NAME]", "never run at this site; may be repeated", "",
            "--not-site NAME", kNeeds},
    TaskKey{"tags", Type::WordList, "[account=lab2]",
            "run only in shapes with this tag; may be repeated", "", "--tag TAG", kNeeds},
    TaskKey{"directory", Type::Folder, "results", "folder to run in", "the current one",
            "--cwd DIR", kEnvironment, python("cwd")},
    TaskKey{"env", Type::Variables, "{NAME: VALUE}",
            "set an environment variable; without VALUE, copy yours; may be repeated", "",
            "--env NAME[=VALUE]", kEnvironment},
    TaskKey{"environment", Type::Variables, "{NAME: VALUE}",
            "all environment variables, instead of yours", "", "", "", kNotPython},
    TaskKey{"stdin", Type::File, "FILE", "standard input", "none", "--stdin FILE", kEnvironment},
    TaskKey{"stdout", Type::Stream, "out.{}",
            "write standard output to FILE; `none` discards it; for many tasks use {index}, {id} "
            "or {} in the name",
            "kept for `log`", "--stdout FILE", kEnvironment},
    TaskKey{"stderr", Type::Stream, "err.{}", "write standard error to FILE; `none` discards it",
            "kept for `log`", "--stderr FILE", kEnvironment},
    TaskKey{"open_mode", Type::Choice, "append",
            "what to do with output files that exist: truncate (empty them) or append", "truncate",
            "--open-mode WORD", kEnvironment, choice("truncate append", 36)},
    TaskKey{"output_limit", Type::SizeOrNone, "10M",
            "of output kept for `log`, keep this much from the start of each stream, and its end",
            "1G or the site's; `run`: all", "--output-limit SIZE|none", kEnvironment},
    TaskKey{"inputs", Type::Files, "{NAME: PATH}",
            "an input of the tool (repeat it for a list), or a file that the command finds as NAME "
            "in its own folder",
            "", "--input NAME=PATH", kFiles},
    TaskKey{"outputs", Type::Files, "{NAME: PATH}",
            "where to put an output of the tool, or the file NAME that the command leaves in its "
            "folder",
            "", "--output NAME=PATH", kFiles},
    TaskKey{"shared", Type::Folders, "[/data]", "folders that its node must see", "", "", "",
            kNotPython},
    TaskKey{"stream_input", Type::Flag, "false", "standard input comes through the API", "", "", "",
            kNotPython},
    TaskKey{"container", Type::Image, "IMAGE",
            "run in this container image; in files and the API also {image: IMAGE, binds: "
            "[/a:/b:ro], network: none, ...}",
            "", "--container IMAGE", kEnvironment},
    TaskKey{"service", Type::Service, "{name: N, command: [...]}",
            "a process that the pilot keeps running for such tasks", "", "", "", kNotPython},
    TaskKey{"retries", Type::Whole, "1", "run again this often if the task itself fails", "0",
            "--retries N", kOrder, from_to(0, 1000)},
    TaskKey{"priority", Type::Whole, "0", "higher numbers start earlier", "0", "--priority N",
            kOrder, from_to(-1'000'000, 1'000'000)},
    TaskKey{"hold", Type::Flag, "false", "do not start before `hpcbatch release ID`", "false",
            "--hold", kOrder, kOnlySubmit},
    TaskKey{"max_running", Type::Whole, "20", "tasks of the array that may run at once", "no limit",
            "", "", from_to(0, 1'000'000'000)},
    TaskKey{"max_failures", Type::Whole, "10", "after more failures, cancel what has not started",
            "no limit", "", "", from_to(0, 1'000'000'000, 0, "max_fails")},
    TaskKey{"halt_running", Type::Flag, "false", "after that many failures, end running tasks too",
            "false", "", "", kNotPython},
};

/// What others call them.
constexpr std::array kElsewhere{
    NamedElsewhere{"memory", "mem mem_mb ram"},
    NamedElsewhere{"cpus", "threads cores ntasks"},
    NamedElsewhere{"time", "walltime runtime timeout"},
    NamedElsewhere{"directory", "cwd dir workdir chdir"},
    NamedElsewhere{"command", "cmd script run shell"},
    NamedElsewhere{"after", "depends depends_on dependencies needs"},
    NamedElsewhere{"items", "each"},
    NamedElsewhere{"tags", "partition account qos"},
    NamedElsewhere{"container", "image"},
    NamedElsewhere{"stdout", "output"},
    NamedElsewhere{"stderr", "error"},
    NamedElsewhere{"max_failures", "max_fails"},
    NamedElsewhere{"name", "id label rule"},
};

}  // namespace

std::span<const TaskKey> task_keys() {
  return kKeys;
}

const TaskKey* find_task_key(std::string_view name) {
  const auto* at = std::find_if(kKeys.begin(), kKeys.end(),
                                [&](const TaskKey& key) { return key.name == name; });
  return at == kKeys.end() ? nullptr : at;
}

std::string task_key_hint(std::string_view name) {
  if (const std::string meant = meant_elsewhere(kElsewhere, name); !meant.empty())
    return "; did you mean '" + meant + "'?";
  std::vector<std::string> known;
  known.reserve(kKeys.size());
  for (const TaskKey& key : kKeys) known.emplace_back(key.name);
  if (const std::string near = nearest_spelling(name, known); !near.empty())
    return "; did you mean '" + near + "'?";
  return "; `hpcbatch help task-file` lists them";
}

}  // namespace hpcbatch
