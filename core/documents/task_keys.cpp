#include "documents/task_keys.hpp"

#include "documents/texts.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

using Type = TaskKey::Type;

constexpr std::array kKeys{
    TaskKey{"command", Type::Text, "[fit, --data, \"{}\"]",
            "program and arguments; no shell reads them: for one write [sh, -c, \"A | B\"]"},
    TaskKey{"tool", Type::Text, "ina_speech_segmenter", "a tool in place of a command"},
    TaskKey{"parameters", Type::Text, "{K: V}", "of the tool"},
    TaskKey{"name", Type::Text, "fit", "shown, and what `after` of other tasks of the file names"},
    TaskKey{"kind", Type::Text, "bwa_map",
            "tasks of a kind are reported on together (the tool, the name, the program)"},
    TaskKey{"after", Type::Text, "[prepare]", "start when these have succeeded: names, or ids"},
    TaskKey{"after_any", Type::Text, "[prepare]", "start when these have ended"},
    TaskKey{"after_each", Type::Text, "[fit]", "pair equal indices of two arrays"},
    TaskKey{"array", Type::Text, "1-100%20", "one task for each index; at most 20 at once"},
    TaskKey{"numbered", Type::Boolean, "false",
            "each task has a number as a batch job has: {number} in paths, "
            "$HPCBATCH_BATCH_NUMBER"},
    TaskKey{"items", Type::Text, "[a.wav, b.wav]",
            "one task for each: {} in the command, {1} {2} where they are lists, {NAME} where they "
            "are maps"},
    TaskKey{"columns", Type::Text, "[sample, lambda]", "names for the columns of items: {sample}"},
    TaskKey{"item_texts", Type::Text, "[...]", "what {} stands for where items are maps"},
    TaskKey{"follows", Type::Text, "[12]", "submissions whose items that ended well it leaves out"},
    TaskKey{"cpus", Type::Number, "2", "processors; a half is 0.5 (1)"},
    TaskKey{"memory", Type::Text, "8G", "need and limit (its cpus' share of a node)"},
    TaskKey{"disk", Type::Text, "10G", "scratch space"},
    TaskKey{"gpus", Type::Amounts, "1",
            "of any kind, or {a100: 2}, or {count: 1, memory: 40G, capability: 8.0}"},
    TaskKey{"one_of", Type::Ways, "[{gpus: 1, cpus: 4}, {cpus: 16}]",
            "any of these would do, the best first; in place of cpus and gpus"},
    TaskKey{"time", Type::Text, "1h30m", "need and limit"},
    TaskKey{"estimate", Type::Text, "use",
            "off, advise or use: what runs before used (the site's)"},
    TaskKey{"cpu_bind", Type::Text, "scatter",
            "which of a node's cpus: compact, scatter, numa or none (compact)"},
    TaskKey{"threads_per_core", Type::Number, "1", "at most so many of each core's (all)"},
    TaskKey{"resources", Type::Amounts, "{licences/x: 1}", "a site's own amounts"},
    TaskKey{"nodes", Type::Number, "1", "only 1 so far"},
    TaskKey{"site", Type::Text, "NAME", "only there"},
    TaskKey{"not_sites", Type::Text, "[NAME]", "never there"},
    TaskKey{"tags", Type::Text, "[account=lab2]", "only where shapes have these"},
    TaskKey{"directory", Type::Text, "results", "to run in (the current one)"},
    TaskKey{"env", Type::Text, "{NAME: VALUE}", "variables that are added"},
    TaskKey{"environment", Type::Text, "{NAME: VALUE}", "all variables, in place of yours"},
    TaskKey{"stdin", Type::Text, "FILE", "standard input (none)"},
    TaskKey{"stdout", Type::Text, "out.{}", "standard output, or none (kept for `log`)"},
    TaskKey{"stderr", Type::Text, "err.{}", "standard error, or none (kept for `log`)"},
    TaskKey{"output_limit", Type::Text, "10M", "what is kept of output that goes to no file"},
    TaskKey{"inputs", Type::Text, "{NAME: PATH}", "files that it finds as NAME"},
    TaskKey{"outputs", Type::Text, "{NAME: PATH}", "files NAME that it leaves, and where they go"},
    TaskKey{"shared", Type::Text, "[/data]", "folders that must be seen where it runs"},
    TaskKey{"stream_input", Type::Boolean, "false", "standard input comes by the API"},
    TaskKey{"container", Type::Text, "IMAGE",
            "run in this image; or {image: IMAGE, binds: [/a:/b:ro], network: none, ...}"},
    TaskKey{"service", Type::Map, "{name: N, command: [...]}",
            "a process that the pilot keeps warm for it"},
    TaskKey{"retries", Type::Number, "1", "of failures that are its own (0)"},
    TaskKey{"priority", Type::Number, "0", "higher starts earlier"},
    TaskKey{"hold", Type::Boolean, "false", "do not start before `hpcbatch release`"},
    TaskKey{"max_running", Type::Number, "20", "of an array, at most so many at once"},
    TaskKey{"max_failures", Type::Number, "10", "with more, what has not started is cancelled"},
    TaskKey{"halt_running", Type::Boolean, "false", "and what runs is ended"},
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
