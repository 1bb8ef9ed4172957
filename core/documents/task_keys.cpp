#include "documents/task_keys.hpp"

#include "documents/texts.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

using Type = TaskKey::Type;

constexpr std::string_view kNeeds = "Needs", kSurroundings = "Surroundings", kCourse = "Course",
                           kTool = "Tool", kFiles = "Files";

constexpr TaskKey::More kNotPython{.python = "-"};
constexpr TaskKey::More kOnlySubmit{.only_submit = true};
constexpr TaskKey::More kOrAll{.all = true};
constexpr TaskKey::More python(std::string_view keyword) {
  return {.python = keyword};
}
/// `field`: its number in `Start`, of what the pilot alone acts on.
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
            "program and arguments; no shell reads them: for one write [sh, -c, \"A | B\"]", "", "",
            "", kNotPython},
    TaskKey{"tool", Type::Word, "ina_speech_segmenter", "run this tool instead of a command", "",
            "--tool NAME", kTool},
    TaskKey{"parameters", Type::Values, "{K: V}", "a parameter of the tool", "", "--param K=V",
            kTool},
    TaskKey{"name", Type::Text, "fit",
            "a name to show, and what `after` of other tasks of a file means", "", "--name NAME",
            kCourse},
    TaskKey{"kind", Type::Text, "bwa_map",
            "what kind of task it is: tasks of a kind are reported on together",
            "the tool, the name, the program", "--kind NAME", kCourse},
    TaskKey{"after", Type::Ids, "[prepare]", "start when these have succeeded", "", "--after ID",
            kCourse},
    TaskKey{"after_any", Type::Ids, "[prepare]", "start when these have ended", "",
            "--after-any ID", kCourse},
    TaskKey{"after_each", Type::Ids, "[fit]", "pair equal indices of two arrays", "",
            "--after-each ID", kCourse, kOnlySubmit},
    TaskKey{"array", Type::Range, "1-100%20", "one task for each index; at most 20 at once", "", "",
            "", kNotPython},
    TaskKey{"numbered", Type::Flag, "false",
            "each task has a number as a batch job has: {number} in paths, $HPCBATCH_BATCH_NUMBER",
            "", "", "", kNotPython},
    TaskKey{"items", Type::ItemList, "[a.wav, b.wav]",
            "one task for each: {} in the command, {1} {2} where they are lists, {NAME} where they "
            "are maps",
            "", "", "", kNotPython},
    TaskKey{"columns", Type::WordList, "[sample, lambda]",
            "names for the columns of items: {sample}"},
    TaskKey{"item_texts", Type::ItemTexts, "[...]", "what {} stands for where items are maps", "",
            "", "", kNotPython},
    TaskKey{"follows", Type::Ids, "[12]", "submissions whose items that ended well it leaves out",
            "", "", "", kNotPython},
    TaskKey{"cpus", Type::Cpus, "2", "processors; a half is 0.5; all: those of a node", "1",
            "--cpus N", kNeeds, kOrAll},
    TaskKey{"memory", Type::Size, "8G", "memory, a limit too; all: that of a node",
            "its cpus' share of a node", "--mem SIZE", kNeeds, kOrAll},
    TaskKey{"disk", Type::Size, "10G", "scratch space", "none", "--disk SIZE", kNeeds},
    TaskKey{"gpus", Type::Gpus, "1",
            "GPUs of any kind, or by kind, as a100:2, or of either, as 'a100|h100:2'; a part of "
            "one as 0.25",
            "none", "--gpus N|KIND:N", kNeeds},
    TaskKey{"gpu_memory", Type::Size, "40G", "only kinds of GPU with so much memory",
            "any; 1 GPU where none is asked for", "--gpu-memory SIZE", kNeeds},
    TaskKey{"gpu_capability", Type::Capability, "8.0",
            "only kinds of GPU with this compute capability or a newer one", "any",
            "--gpu-capability N.N", kNeeds},
    TaskKey{"one_of", Type::Ways, "[{gpus: 1, cpus: 4}, {cpus: 16}]",
            "any of these would do, the best first, in place of cpus and GPUs: gpus=1,cpus=4, then "
            "cpus=16; of cpus, mem, disk, gpus, gpu-memory, gpu-capability",
            "no choice", "--one-of NEEDS", kNeeds},
    TaskKey{"time", Type::TimeSpan, "1h30m", "need and limit", "none", "--time DURATION", kNeeds},
    TaskKey{"estimate", Type::Choice, "use",
            "what runs of its kind used before: off, advise (say it) or use (need that, where less "
            "or nothing is said)",
            "the site's", "--estimate WORD", kNeeds, choice("off advise use")},
    TaskKey{"cpu_bind", Type::Choice, "scatter",
            "which of a node's cpus it is bound to: compact (close together), scatter, numa (one "
            "node of memory, or later), none; near its GPU where it has one",
            "compact", "--cpu-bind WORD", kNeeds, choice("compact scatter numa none", 30)},
    TaskKey{"threads_per_core", Type::Whole, "1",
            "use at most so many threads of each core; the others stay idle meanwhile", "all",
            "--threads-per-core N", kNeeds, from_to(1, 8, 31)},
    TaskKey{"resources", Type::Amounts, "{licences/x: 1}", "a site's own amounts", "", "", "",
            kNotPython},
    TaskKey{"nodes", Type::Nodes, "1", "nodes of one task; only 1 so far", "", "--nodes N", kNeeds,
            kNotPython},
    TaskKey{"site", Type::Word, "NAME", "only there", "", "--site NAME", kNeeds},
    TaskKey{"not_sites", Type::WordList, "[NAME]", "never there; may be repeated", "",
            "--not-site NAME", kNeeds},
    TaskKey{"tags", Type::WordList, "[account=lab2]",
            "only where shapes have this tag; may be repeated", "", "--tag TAG", kNeeds},
    TaskKey{"directory", Type::Folder, "results", "folder to run in", "the current one",
            "--cwd DIR", kSurroundings, python("cwd")},
    TaskKey{"env", Type::Variables, "{NAME: VALUE}", "set this variable; may be repeated", "",
            "--env NAME[=VALUE]", kSurroundings},
    TaskKey{"environment", Type::Variables, "{NAME: VALUE}", "all variables, in place of yours", "",
            "", "", kNotPython},
    TaskKey{"stdin", Type::File, "FILE", "standard input", "none", "--stdin FILE", kSurroundings},
    TaskKey{"stdout", Type::Stream, "out.{}",
            "standard output to this file, or nowhere (none); of many tasks with {index}, {id} or, "
            "for the item, {} in it",
            "kept for `log`", "--stdout FILE", kSurroundings},
    TaskKey{"stderr", Type::Stream, "err.{}", "standard error to this file, or nowhere (none)",
            "kept for `log`", "--stderr FILE", kSurroundings},
    TaskKey{"output_limit", Type::SizeOrNone, "10M",
            "of output that goes to no file, keep so much of each stream's beginning, and its end",
            "1G or as the site says; `run`: all", "--output-limit SIZE|none", kSurroundings},
    TaskKey{"inputs", Type::Files, "{NAME: PATH}",
            "an input of the tool (the same name again makes a list), or a file that the command "
            "finds as NAME in a directory of its own",
            "", "--input NAME=PATH", kFiles},
    TaskKey{"outputs", Type::Files, "{NAME: PATH}",
            "where an output of the tool goes, or the file NAME that the command leaves in its "
            "directory",
            "", "--output NAME=PATH", kFiles},
    TaskKey{"shared", Type::Folders, "[/data]", "folders that must be seen where it runs", "", "",
            "", kNotPython},
    TaskKey{"stream_input", Type::Flag, "false", "standard input comes by the API", "", "", "",
            kNotPython},
    TaskKey{"container", Type::Image, "IMAGE",
            "run in this image; in a file or by the API also {image: IMAGE, binds: [/a:/b:ro], "
            "network: none, ...}",
            "", "--container IMAGE", kSurroundings},
    TaskKey{"service", Type::Service, "{name: N, command: [...]}",
            "a process that the pilot keeps warm for it", "", "", "", kNotPython},
    TaskKey{"retries", Type::Whole, "1",
            "how often a failure that is the task's own is tried again, up to 1000", "0",
            "--retries N", kCourse, from_to(0, 1000)},
    TaskKey{"priority", Type::Whole, "0", "higher starts earlier, -1000000 to 1000000", "0",
            "--priority N", kCourse, from_to(-1'000'000, 1'000'000)},
    TaskKey{"hold", Type::Flag, "false", "do not start before `hpcbatch release ID`", "false",
            "--hold", kCourse, kOnlySubmit},
    TaskKey{"max_running", Type::Whole, "20", "of an array, at most so many at once", "no bound",
            "", "", from_to(0, 1'000'000'000)},
    TaskKey{"max_failures", Type::Whole, "10",
            "with more failures, what has not started is cancelled", "no bound", "", "",
            from_to(0, 1'000'000'000, 0, "max_fails")},
    TaskKey{"halt_running", Type::Flag, "false", "and what runs is ended", "false", "", "",
            kNotPython},
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
