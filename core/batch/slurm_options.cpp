#include "batch/slurm_options.hpp"

#include "batch/file_pattern.hpp"
#include "model/batch_number.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

namespace hpcbatch::batch {
namespace {

using enum Fate;
constexpr auto kNone = Argument::None;
constexpr auto kNeeded = Argument::Needed;
constexpr auto kOptional = Argument::Optional;

constexpr std::string_view kOneNode = "a task has one node, where that says nothing";
constexpr std::string_view kOfJob = "it says something of the batch job alone, which is a pilot's";
constexpr std::string_view kNoChoice =
    "tasks do not choose nodes; say what they must have with --constraint, or leave it out";

constexpr std::array kDirectives{
    Directive{"account", 'A', kNeeded, Holds, "`--account`"},
    Directive{"acctg-freq", 0, kNeeded, LeftOut, kOfJob},
    Directive{"array", 'a', kNeeded, Holds, "`--array`, with `%limit`, steps, lists and index 0"},
    Directive{"batch", 0, kNeeded, LeftOut, kOneNode},
    Directive{"bb", 0, kNeeded, Refused,
              "there are no burst buffers; copy the files in the script"},
    Directive{"bbf", 0, kNeeded, Refused,
              "there are no burst buffers; copy the files in the script"},
    Directive{"begin", 'b', kNeeded, Holds, "`now` alone; a later time is refused"},
    Directive{"chdir", 'D', kNeeded, Holds, "`--cwd`"},
    Directive{"cluster-constraint", 0, kNeeded, Refused, "say --site NAME for one of your sites"},
    Directive{"clusters", 'M', kNeeded, Refused, "say --site NAME for one of your sites"},
    Directive{"comment", 0, kNeeded, LeftOut, kOfJob},
    Directive{"consolidate-segments", 0, kNone, LeftOut, kOneNode},
    Directive{"constraint", 'C', kNeeded, Holds, "`--constraint`"},
    Directive{"container", 0, kNeeded, Refused,
              "that is the folder of an OCI bundle; hpcbatch runs images: --container IMAGE"},
    Directive{"container-id", 0, kNeeded, Refused, "hpcbatch runs images: --container IMAGE"},
    Directive{"contiguous", 0, kNone, LeftOut, kOneNode},
    Directive{"core-spec", 'S', kNeeded, Refused,
              "leave it out: a pilot has the cores of its shape"},
    Directive{"cores-per-socket", 0, kNeeded, Refused, kNoChoice},
    Directive{"cpu-freq", 0, kNeeded, LeftOut, "frequencies are the node's"},
    Directive{"cpus-per-gpu", 0, kNeeded, Holds, "`--cpus`, for all GPUs"},
    Directive{"cpus-per-task", 'c', kNeeded, Holds, "`--cpus`, for all of --ntasks"},
    Directive{"deadline", 0, kNeeded, Refused,
              "tasks have no deadline; say how long it may run with --time"},
    Directive{"delay-boot", 0, kNeeded, LeftOut, kOfJob},
    Directive{"dependency", 'd', kNeeded, Holds,
              "`afterok`, `afterany` and `aftercorr` of tasks of hpcbatch, as `--after`, "
              "`--after-any` and `--after-each`; others are refused"},
    Directive{"distribution", 'm', kNeeded, LeftOut, kOneNode},
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
    Directive{"gpus", 'G', kNeeded, Holds, "`--gpus`"},
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
              "what waits for a task that failed never starts, and says so"},
    Directive{"licenses", 'L', kNeeded, Refused,
              "say licences as `resources` of a task file, where the site has them"},
    Directive{"mail-type", 0, kNeeded, LeftOut, "no mails are sent; hpcbatch wait tells the end"},
    Directive{"mail-user", 0, kNeeded, LeftOut, "no mails are sent; hpcbatch wait tells the end"},
    Directive{"mcs-label", 0, kNeeded, LeftOut, kOfJob},
    Directive{"mem", 0, kNeeded, Holds, "`--mem`; 0 is `--mem all`"},
    Directive{"mem-bind", 0, kNeeded, LeftOut, "say --cpu-bind numa for one node of memory"},
    Directive{"mem-per-cpu", 0, kNeeded, Holds, "`--mem`, for all cpus"},
    Directive{"mem-per-gpu", 0, kNeeded, Holds, "`--mem`, for all GPUs"},
    Directive{"mincpus", 0, kNeeded, Refused, "say --cpus-per-task"},
    Directive{"network", 0, kNeeded, LeftOut, kOneNode},
    Directive{"nice", 0, kOptional, Holds, "`--priority`, as much lower"},
    Directive{"no-kill", 'k', kOptional, LeftOut, kOneNode},
    Directive{"no-requeue", 0, kNone, LeftOut, "a task whose node dies runs again all the same"},
    Directive{"nodefile", 'F', kNeeded, Refused, kNoChoice},
    Directive{"nodelist", 'w', kNeeded, Refused, kNoChoice},
    Directive{"nodes", 'N', kNeeded, Holds, "1, or a range from 1; more are refused"},
    Directive{"ntasks", 'n', kNeeded, Holds, "cpus for all of them on one node"},
    Directive{"ntasks-per-core", 0, kNeeded, LeftOut, kOneNode},
    Directive{"ntasks-per-gpu", 0, kNeeded, Refused, "say --ntasks"},
    Directive{"ntasks-per-node", 0, kNeeded, Holds, "cpus for all of them"},
    Directive{"ntasks-per-socket", 0, kNeeded, LeftOut, kOneNode},
    Directive{"oom-kill-step", 0, kOptional, LeftOut, "a task that runs out of memory ends whole"},
    Directive{"open-mode", 0, kNeeded, Holds, "`truncate` alone"},
    Directive{"output", 'o', kNeeded, Holds,
              "`--stdout`, with SLURM's patterns, and for errors too"},
    Directive{"overcommit", 'O', kNone, LeftOut, kOneNode},
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
    Directive{"requeue", 0, kNone, LeftOut, "what dies with its node runs again anyhow"},
    Directive{"reservation", 0, kNeeded, Holds, "`--reservation`"},
    Directive{"resv-ports", 0, kOptional, LeftOut, kOneNode},
    Directive{"segment", 0, kNeeded, LeftOut, kOneNode},
    Directive{"signal", 0, kNeeded, Holds,
              "`B:NAME@SECONDS` with a time limit; without `B:` it is refused"},
    Directive{"sockets-per-node", 0, kNeeded, Refused, kNoChoice},
    Directive{"spread-job", 0, kNone, LeftOut, kOneNode},
    Directive{"stepmgr", 0, kNone, LeftOut, kOfJob},
    Directive{"switches", 0, kNeeded, LeftOut, kOneNode},
    Directive{"test-only", 0, kNone, Holds, "`--dry-run`"},
    Directive{"thread-spec", 0, kNeeded, Refused,
              "leave it out: a pilot has the cores of its shape"},
    Directive{"threads-per-core", 0, kNeeded, Holds, "`--threads-per-core`"},
    Directive{"time", 't', kNeeded, Holds, "`--time`; 0 and `UNLIMITED` are no limit"},
    Directive{"time-min", 0, kNeeded, LeftOut, "a task may have all of its time"},
    Directive{"tmp", 0, kNeeded, Holds, "`--disk`"},
    Directive{"tres-bind", 0, kNeeded, LeftOut, "a task sees all its GPUs, and no others"},
    Directive{"tres-per-task", 0, kNeeded, Refused, "say --cpus-per-task and --gpus-per-task"},
    Directive{"uid", 0, kNeeded, Refused, "a task runs as who submits it"},
    Directive{"usage", 0, kNone, Refused, "that asks for a help text; remove it"},
    Directive{"use-min-nodes", 0, kNone, LeftOut, kOneNode},
    Directive{"verbose", 'v', kNone, LeftOut, "submit says what holds"},
    Directive{"version", 'V', kNone, Refused, "that asks for a version; remove it"},
    Directive{"wait", 'W', kNone, Holds, "`--wait`"},
    Directive{"wait-all-nodes", 0, kNeeded, LeftOut, kOneNode},
    Directive{"wckey", 0, kNeeded, LeftOut, kOfJob},
    Directive{"wrap", 0, kNeeded, Refused, "that belongs to a command line without a script"},
    Directive{"x11", 0, kOptional, Refused, "there are no windows; leave it out"},
};

/// What sbatch's older versions called them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFormerly{
    {{"workdir", "chdir"}, {"share", "oversubscribe"}, {"cpus", "cpus-per-task"}}};

/// SLURM counts in megabytes where no unit is said.
std::string memory_of(const std::string& text) {
  return number_in(text) ? text + "M" : text;
}

/// `gpu:a100:2`, `a100:2`, `2` -> what --gpus takes; nothing for several kinds.
std::optional<std::string> gpu_count(std::string_view value) {
  if (value == "gpu") return "1";
  if (value.starts_with("gpu:")) value.remove_prefix(4);
  if (const std::size_t index = value.find("(IDX"); index != std::string_view::npos)
    value = value.substr(0, index);
  if (value.find_first_of(",*+") != std::string_view::npos || value.empty()) return std::nullopt;
  return std::string(value);
}

std::uint64_t count_in(std::string_view gpus) {
  const std::size_t colon = gpus.rfind(':');
  return number_in(colon == std::string_view::npos ? gpus : gpus.substr(colon + 1)).value_or(1);
}

std::optional<std::uint32_t> small_number(std::string_view text) {
  const auto number = number_in(text);
  if (!number || *number == 0 || *number > 1'000'000) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

std::span<const Directive> slurm_directives() {
  return kDirectives;
}

void SlurmOptions::refuse(const std::string& said, std::string_view what) const {
  if (what.empty())
    throw std::invalid_argument(
        where_ + "'" + mark_ + said +
        "' has nothing here that means the same; write a line #HPCBATCH with what you need, or "
        "hand the script to sbatch");
  throw std::invalid_argument(refusal_of(where_, mark_ + said, what));
}

const Directive& SlurmOptions::named(const std::string& name, const std::string& word) const {
  std::string_view wanted = name;
  for (const auto& [old, now] : kFormerly)
    if (name == old) wanted = now;
  const Directive* found = nullptr;
  for (const Directive& one : kDirectives) {
    if (one.name == wanted) return one;
    if (!one.name.starts_with(wanted)) continue;
    if (found != nullptr) refuse(word, "sbatch has several options that begin so");
    found = &one;
  }
  if (found == nullptr || wanted.empty()) refuse(word, {});
  return *found;
}

const Directive& SlurmOptions::lettered(char letter, const std::string& word) const {
  const auto* const found =
      std::find_if(kDirectives.begin(), kDirectives.end(),
                   [&](const Directive& one) { return one.letter == letter; });
  if (found == kDirectives.end()) refuse(word, {});
  return *found;
}

void SlurmOptions::read(const std::vector<std::string>& words, const std::string& where) {
  where_ = where;
  for (std::size_t at = 0; at < words.size();) read_one(words, at, where);
}

void SlurmOptions::read_one(const Words& words, std::size_t& at, const std::string& where) {
  const std::string& word = words[at++];
  if (word == "hetjob" || word == "packjob" || word == ":")
    throw std::invalid_argument(refusal_of(
        where, mark_ + word,
        "a heterogeneous job is several jobs at once; submit a script for each of its parts"));
  if (word.size() < 2 || word.front() != '-' || word == "--")
    throw std::invalid_argument(where + "'" + word + "' is no option of sbatch");
  Said said{word, {}, false};
  const Directive* directive = nullptr;
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    directive = &named(word.substr(2, equals == std::string::npos ? equals : equals - 2), word);
    said.has_value = equals != std::string::npos;
    if (said.has_value) said.value = word.substr(equals + 1);
  } else {
    directive = &lettered(word[1], word);
    said.has_value = word.size() > 2;
    said.value = word.substr(2);
    if (said.has_value && said.value.front() == '=') said.value.erase(0, 1);
  }
  if (directive->argument == kNeeded && !said.has_value) {
    if (at >= words.size()) refuse(word, "its value is missing");
    said.value = words[at++];
    said.has_value = true;
    said.text += " " + said.value;
  }
  if (directive->argument == kNone && said.has_value) refuse(word, "it takes no value");
  take(*directive, said);
}

void SlurmOptions::take(const Directive& directive, const Said& said) {
  if (directive.fate == Refused) refuse(said.text, directive.what);
  if (directive.fate == LeftOut || is_left_out(directive.name, said.value)) {
    terms_.left_out.push_back(said.text);
    return;
  }
  std::optional<Words> words;
  if (const Reader reader = reader_of(directive.name)) {
    words = (this->*reader)(said);
  } else {
    const std::string_view what = directive.what;
    const std::string option(what.substr(1, what.find('`', 1) - 1));
    words = directive.argument == kNone ? Words{option} : Words{option, said.value};
  }
  if (!words) refuse(said.text, {});
  // Not taken for an option.
  if (words->size() == 2 && words->back().starts_with('-'))
    words = Words{words->front() + "=" + words->back()};
  std::string ours;
  for (const std::string& one : *words) {
    ours += ours.empty() ? "" : " ";
    ours += one.starts_with(kPatternMark) ? one.substr(1) : one;
  }
  terms_.held.push_back(said.text + (ours.empty() ? "" : " as " + ours));
  // Of several the last holds, also where it says that there is none.
  std::erase_if(words_of_, [&](const auto& one) { return one.first == directive.name; });
  words_of_.emplace_back(directive.name, std::move(*words));
}

bool SlurmOptions::is_left_out(std::string_view name, std::string_view value) {
  if (caller_ == SlurmCaller::Submit) return false;
  if (name == "open-mode") return terms_.appends = value.starts_with('a');
  const bool is_for_steps = name == "signal" && value.find("B:") == std::string_view::npos;
  if (is_for_steps) terms_.signal.clear();
  return is_for_steps;
}

SlurmOptions::Reader SlurmOptions::reader_of(std::string_view name) {
  using S = SlurmOptions;
  static constexpr std::array<std::pair<std::string_view, Reader>, 24> kReaders{
      {{"cpus-per-task", &S::cpus},
       {"ntasks", &S::tasks},
       {"nodes", &S::nodes},
       {"ntasks-per-node", &S::tasks_per_node},
       {"mem", &S::memory},
       {"mem-per-cpu", &S::memory_per_cpu},
       {"mem-per-gpu", &S::memory_per_gpu},
       {"cpus-per-gpu", &S::cpus_per_gpu},
       {"time", &S::time},
       {"gpus", &S::gpus<&Terms::gpus>},
       {"gpus-per-node", &S::gpus<&Terms::gpus_per_node>},
       {"gpus-per-task", &S::gpus<&Terms::gpus_per_task>},
       {"gres", &S::gres},
       {"output", &S::output},
       {"error", &S::error},
       {"input", &S::input},
       {"open-mode", &S::open_mode},
       {"dependency", &S::dependency},
       {"begin", &S::begin},
       {"nice", &S::nice},
       {"signal", &S::signal},
       {"export", &S::export_list},
       {"exclusive", &S::exclusive},
       {"tmp", &S::disk}}};
  for (const auto& [known, reader] : kReaders)
    if (known == name) return reader;
  return nullptr;
}

std::optional<SlurmOptions::Words> SlurmOptions::cpus(const Said& said) {
  const auto count = small_number(said.value);
  if (!count) return std::nullopt;
  cpus_per_task_ = *count;
  terms_.says_cpus = true;
  return Words{"--cpus", said.value};
}

/// `1`, `1-1`, `1-4`: one of them is enough.
std::optional<SlurmOptions::Words> SlurmOptions::nodes(const Said& said) {
  const auto least = number_in(std::string_view(said.value).substr(0, said.value.find('-')));
  if (!least || *least != 1) return std::nullopt;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::tasks(const Said& said) {
  const auto count = small_number(said.value);
  if (!count) return std::nullopt;
  terms_.tasks = *count;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::tasks_per_node(const Said& said) {
  const auto count = small_number(said.value);
  if (!count) return std::nullopt;
  terms_.tasks_per_node = *count;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::memory(const Said& said) {
  terms_.memory_per_cpu = memory_per_gpu_ = 0;
  if (number_in(said.value) == 0U) return Words{"--mem", "all"};
  if (!parse_size(memory_of(said.value))) return std::nullopt;
  return Words{"--mem", memory_of(said.value)};
}

std::optional<SlurmOptions::Words> SlurmOptions::memory_per_cpu(const Said& said) {
  const auto bytes = parse_size(memory_of(said.value));
  if (!bytes) return std::nullopt;
  if (*bytes == 0) return Words{"--mem", "all"};
  terms_.memory_per_cpu = *bytes;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::memory_per_gpu(const Said& said) {
  const auto bytes = parse_size(memory_of(said.value));
  if (!bytes || *bytes == 0) return std::nullopt;
  memory_per_gpu_ = *bytes;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::cpus_per_gpu(const Said& said) {
  const auto count = small_number(said.value);
  if (!count) return std::nullopt;
  cpus_per_gpu_ = *count;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::time(const Said& said) {
  if (said.value == "UNLIMITED" || said.value == "INFINITE") return Words{};
  const auto time = slurm_time(said.value);
  if (!time) return std::nullopt;
  if (time->count() == 0) return Words{};
  return Words{"--time", std::to_string(time->count()) + "s"};
}

template <std::string Terms::*into>
std::optional<SlurmOptions::Words> SlurmOptions::gpus(const Said& said) {
  const auto count = gpu_count(said.value);
  if (!count) return std::nullopt;
  terms_.*into = *count;
  return Words{"--gpus", *count};
}

std::optional<SlurmOptions::Words> SlurmOptions::gres(const Said& said) {
  if (said.value == "none" || said.value == "NONE") return Words{};
  std::string_view value = said.value;
  if (value.starts_with("gres/")) value.remove_prefix(5);
  if (value != "gpu" && !value.starts_with("gpu:")) return std::nullopt;
  const auto count = gpu_count(value);
  if (!count) return std::nullopt;
  return Words{"--gpus", *count};
}

std::optional<SlurmOptions::Words> SlurmOptions::output(const Said& said) {
  if (!is_slurm_file(said.value)) return std::nullopt;
  return Words{"--stdout", kPatternMark + said.value};
}

std::optional<SlurmOptions::Words> SlurmOptions::error(const Said& said) {
  if (!is_slurm_file(said.value)) return std::nullopt;
  return Words{"--stderr", kPatternMark + said.value};
}

std::optional<SlurmOptions::Words> SlurmOptions::input(const Said& said) {
  if (said.value == "none") return Words{};
  // Only what writes knows where it runs.
  if (!is_slurm_file(said.value) || said.value.find("%N") != std::string::npos) return std::nullopt;
  return Words{"--stdin", kPatternMark + said.value};
}

std::optional<SlurmOptions::Words> SlurmOptions::open_mode(const Said& said) {
  if (said.value != "truncate" && said.value != "t") return std::nullopt;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::dependency(const Said& said) {
  try {
    return slurm_dependency(said.value);
  } catch (const std::invalid_argument& error) {
    refuse(said.text, error.what());
  }
}

std::optional<SlurmOptions::Words> SlurmOptions::begin(const Said& said) {
  if (said.value == "now") return Words{};
  refuse(said.text,
         "tasks start as soon as they can; run submit at that time, by cron or at, or say --hold");
}

std::optional<SlurmOptions::Words> SlurmOptions::nice(const Said& said) {
  std::string_view value = said.has_value ? std::string_view(said.value) : "100";
  const bool is_negative = value.starts_with('-');
  if (is_negative) value.remove_prefix(1);
  const auto number = number_in(value);
  if (!number || *number > 2'147'483'645) return std::nullopt;
  const auto most = std::min<std::uint64_t>(*number, 1'000'000);
  return Words{"--priority", (is_negative || most == 0 ? "" : "-") + std::to_string(most)};
}

std::optional<SlurmOptions::Words> SlurmOptions::signal(const Said& said) {
  std::string_view value = said.value;
  if (!value.starts_with("B:"))
    refuse(
        said.text,
        "without B: it goes to steps of srun and not to the script; write --signal=B:NAME@SECONDS");
  value.remove_prefix(2);
  const std::size_t at = std::min(value.find('@'), value.size());
  terms_.signal = value.substr(0, at);
  const auto before = at < value.size() ? number_in(value.substr(at + 1)) : 60;
  if (!before || *before > 65'535 || terms_.signal.empty()) return std::nullopt;
  if (terms_.signal.starts_with("SIG")) terms_.signal.erase(0, 3);
  const bool is_word = std::all_of(terms_.signal.begin(), terms_.signal.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  if (!is_word) return std::nullopt;
  terms_.signal_before = *before;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::export_list(const Said& said) {
  if (said.value == "NIL" || said.value.empty()) return std::nullopt;
  return Words{"--export", said.value};
}

std::optional<SlurmOptions::Words> SlurmOptions::exclusive(const Said& said) {
  // Of whom else: nobody's tasks but the user's own are there, so what is meant is other batch jobs.
  if (said.has_value && said.value != "user") return std::nullopt;
  exclusive_ = !said.has_value;
  return Words{};
}

std::optional<SlurmOptions::Words> SlurmOptions::disk(const Said& said) {
  if (!parse_size(memory_of(said.value))) return std::nullopt;
  return Words{"--disk", memory_of(said.value)};
}

Terms SlurmOptions::finish() {
  Words& options = terms_.options;
  for (const auto& [name, words] : words_of_)
    options.insert(options.end(), words.begin(), words.end());
  const auto add = [&](const char* option, const std::string& value) {
    options.emplace_back(option);
    options.push_back(value);
  };
  if (terms_.tasks == 0 && terms_.tasks_per_node != 0) terms_.tasks = terms_.tasks_per_node;
  const std::uint64_t tasks = std::max(1U, terms_.tasks);
  if (!terms_.gpus_per_task.empty() && tasks > 1) {
    const std::string& each = terms_.gpus_per_task;
    const std::size_t colon = each.rfind(':');
    add("--gpus", (colon == std::string::npos ? "" : each.substr(0, colon + 1)) +
                      std::to_string(count_in(each) * tasks));
  }
  // However many cpus are said, before or behind it.
  if (exclusive_) add("--cpus", "all");
  std::uint64_t gpus = 0;
  for (std::size_t at = 0; at + 1 < options.size(); ++at)
    if (options[at] == "--gpus") gpus = count_in(options[at + 1]);
  std::uint64_t cpus = tasks * std::max(1U, cpus_per_task_);
  if (cpus_per_gpu_ != 0) cpus = std::max<std::uint64_t>(1, gpus) * cpus_per_gpu_;
  if (!exclusive_ && (tasks > 1 || cpus_per_gpu_ != 0)) add("--cpus", std::to_string(cpus));
  std::uint64_t memory = 0;
  // More than any node has, and no overflow.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  terms_.memory_per_cpu = std::min(terms_.memory_per_cpu, kMost / cpus);
  memory_per_gpu_ = std::min(memory_per_gpu_, kMost / std::max<std::uint64_t>(1, gpus));
  if (terms_.memory_per_cpu != 0) memory = terms_.memory_per_cpu * cpus;
  if (memory_per_gpu_ != 0) memory = memory_per_gpu_ * std::max<std::uint64_t>(1, gpus);
  if (exclusive_ && terms_.memory_per_cpu != 0)
    add("--mem", "all");
  else if (memory != 0)
    add("--mem", std::to_string(memory));
  return std::move(terms_);
}

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kDependencies{
    {{"afterok", "--after"},
     {"afterany", "--after-any"},
     {"aftercorr", "--after-each"},
     {"", "--after-any"}}};

std::string id_of(std::string_view text) {
  const auto number = number_in(text);
  if (!number)
    throw std::invalid_argument(
        "'" + std::string(text) +
        "' is no number of a job; those of an array's tasks have their own");
  const auto id = id_of_batch_number(*number);
  if (!id)
    throw std::invalid_argument(
        "job " + std::string(text) +
        " is the batch system's own; tasks of hpcbatch can wait for each other, by numbers from "
        "2000000001");
  return std::to_string(id->value);
}

}  // namespace

std::vector<std::string> slurm_dependency(const std::string& text) {
  if (text.find('?') != std::string::npos)
    throw std::invalid_argument("any of several cannot be waited for, only all of them");
  std::vector<std::string> options;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view one = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = std::min(one.find(':'), one.size());
    // A number alone is what sbatch called afterany before it had words.
    const bool is_number = number_in(one).has_value();
    const std::string_view kind = is_number ? std::string_view() : one.substr(0, colon);
    if (!is_number) one.remove_prefix(std::min(colon + 1, one.size()));
    const auto* const known = std::find_if(kDependencies.begin(), kDependencies.end(),
                                           [&](const auto& pair) { return pair.first == kind; });
    if (known == kDependencies.end() || (!is_number && kind.empty()))
      throw std::invalid_argument(
          "'" + std::string(kind) +
          "' cannot be waited for; afterok, afterany and aftercorr can, of tasks of hpcbatch");
    if (one.empty()) throw std::invalid_argument("it names no job");
    for (std::size_t at = 0; at <= one.size();) {
      const std::size_t stop = std::min(one.find(':', at), one.size());
      options.emplace_back(known->second);
      options.push_back(id_of(one.substr(at, stop - at)));
      at = stop + 1;
    }
  }
  return options;
}

}  // namespace hpcbatch::batch
