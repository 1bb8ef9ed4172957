#include "batch/slurm_options.hpp"

#include "batch/file_pattern.hpp"
#include "batch/slurm_dependency.hpp"
#include "model/batch_number.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/batch_time.hpp>
#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

namespace hpcbatch::batch {
namespace {

using Words = std::vector<std::string>;
using MaybeWords = std::optional<Words>;

/// What sbatch's older versions called them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFormerly{
    {{"workdir", "chdir"}, {"share", "oversubscribe"}, {"cpus", "cpus-per-task"}}};

/// Options that a job finds in a variable, as they were said or as 1.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kVariables{
    {{"acctg-freq", "SLURM_ACCTG_FREQ"},
     {"comment", "SLURM_JOB_COMMENT"},
     {"cpu-freq", "SLURM_CPU_FREQ_REQ"},
     {"cpus-per-gpu", "SLURM_CPUS_PER_GPU"},
     {"dependency", "SLURM_JOB_DEPENDENCY"},
     {"distribution", "SLURM_DISTRIBUTION"},
     {"export", "SLURM_EXPORT_ENV"},
     {"get-user-env", "SLURM_GET_USER_ENV"},
     {"gpu-bind", "SLURM_GPU_BIND"},
     {"gpu-freq", "SLURM_GPU_FREQ"},
     {"gpus", "SLURM_GPUS"},
     {"gpus-per-node", "SLURM_GPUS_PER_NODE"},
     {"gpus-per-task", "SLURM_GPUS_PER_TASK"},
     {"hint", "SLURM_HINT"},
     {"mem-per-gpu", "SLURM_MEM_PER_GPU"},
     {"network", "SLURM_NETWORK"},
     {"ntasks-per-core", "SLURM_NTASKS_PER_CORE"},
     {"ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
     {"ntasks-per-socket", "SLURM_NTASKS_PER_SOCKET"},
     {"open-mode", "SLURM_OPEN_MODE"},
     {"overcommit", "SLURM_OVERCOMMIT"},
     {"profile", "SLURM_PROFILE"},
     {"spread-job", "SLURM_SPREAD_JOB"},
     {"threads-per-core", "SLURM_THREADS_PER_CORE"}}};

/// SLURM counts in megabytes where no unit is said.
std::string memory_of(const std::string& text) {
  return number_in<std::uint64_t>(text) ? text + "M" : text;
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
  return number_in<std::uint64_t>(gpus.substr(gpus.rfind(':') + 1)).value_or(1);
}

/// Those that sbatch takes, without `SIG`.
bool is_signal(const std::string& name) {
  constexpr std::array<std::string_view, 16> kNames{"ABRT", "ALRM", "CONT", "HUP",  "INT",  "KILL",
                                                    "QUIT", "STOP", "TERM", "TSTP", "TTIN", "TTOU",
                                                    "URG",  "USR1", "USR2", "XCPU"};
  constexpr std::uint64_t kLast = 64;
  if (const auto number = number_in<std::uint64_t>(name)) return *number >= 1 && *number <= kLast;
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::optional<std::uint32_t> small_number(std::string_view text) {
  const auto number = number_in<std::uint32_t>(text);
  return number >= 1U && number <= 1'000'000U ? number : std::nullopt;
}

/// Several options say the same in another way.
std::string_view kind_of(std::string_view name) {
  if (name.starts_with("mem-per-")) return "mem";
  if (name == "no-requeue") return "requeue";
  return name == "oversubscribe" ? "exclusive" : name;
}

MaybeWords size_words(const char* option, const std::string& value) {
  return parse_size(memory_of(value)) ? MaybeWords({option, memory_of(value)}) : std::nullopt;
}

MaybeWords file_words(const char* option, const std::string& value) {
  return is_slurm_file(value) ? MaybeWords({option, kPatternMark + value}) : std::nullopt;
}

MaybeWords gpu_words(std::string_view value) {
  const auto count = gpu_count(value);
  return count ? MaybeWords({"--gpus", *count}) : std::nullopt;
}

MaybeWords count_words(const std::string& value, std::uint32_t& count) {
  const auto number = small_number(value);
  count = number.value_or(count);
  return number ? MaybeWords(Words{}) : std::nullopt;
}

/// No limit is nothing of `option`.
MaybeWords time_words(const char* option, const std::string& value) {
  if (is_slurm_unlimited(value)) return Words{};
  const auto time = slurm_limit(value);
  if (!time) return std::nullopt;
  if (time->count() == 0) return Words{};
  return Words{option, std::to_string(time->count()) + "s"};
}

}  // namespace

bool is_slurm_unlimited(std::string_view text) {
  const std::string word = upper_case(std::string(text));
  return word == "UNLIMITED" || word == "INFINITE" || word == "-1";
}

std::optional<std::chrono::seconds> slurm_limit(std::string_view text) {
  const auto time = slurm_time(text);
  return time ? std::optional(std::chrono::ceil<std::chrono::minutes>(*time)) : std::nullopt;
}

bool is_slurm_variable(std::string_view name) {
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [&](const auto& one) { return one.second == name; });
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
  for (const Directive& one : slurm_directives()) {
    if (one.name == wanted) return one;
    if (!one.name.starts_with(wanted)) continue;
    if (found != nullptr) refuse(word, "sbatch has several options that begin so");
    found = &one;
  }
  if (found == nullptr || wanted.empty()) refuse(word, {});
  return *found;
}

const Directive& SlurmOptions::lettered(char letter, const std::string& word) const {
  const auto all = slurm_directives();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Directive& one) { return one.letter == letter; });
  if (found == all.end()) refuse(word, {});
  return *found;
}

void SlurmOptions::read(const std::vector<std::string>& words, const std::string& where,
                        SaidBy by) {
  where_ = where;
  for (std::size_t at = 0; at < words.size();) read_one(words, at, by);
}

void SlurmOptions::read_one(const Words& words, std::size_t& at, SaidBy by) {
  const std::string& word = words[at++];
  if (word == "hetjob" || word == "packjob" || word == ":")
    throw std::invalid_argument(refusal_of(
        where_, mark_ + word,
        "a heterogeneous job is several jobs at once; submit a script for each of its parts"));
  if (word.size() < 2 || word.front() != '-' || word == "--")
    throw std::invalid_argument(where_ + "'" + word + "' is no option of sbatch");
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
  }
  if (directive->argument == Argument::Needed && !said.has_value) {
    if (at >= words.size()) refuse(word, "its value is missing");
    said.value = words[at++];
    said.has_value = true;
    said.text += " " + said.value;
  }
  if (directive->argument == Argument::None && said.has_value) refuse(word, "it takes no value");
  asked_.push_back({directive, std::move(said), where_, by});
}

/// As sbatch has it: caller and script together, and variables among each other.
void SlurmOptions::check_memory() {
  const Asked* said[2] = {nullptr, nullptr};
  for (const Asked& one : asked_) {
    if (kind_of(one.directive->name) != "mem") continue;
    const Asked*& before = said[one.by == SaidBy::Variable ? 1 : 0];
    if (before && before->directive->name != one.directive->name) {
      where_ = one.where;
      refuse(one.said.text, "beside " + before->said.text +
                                ": --mem, --mem-per-cpu and --mem-per-gpu exclude each other");
    }
    before = &one;
  }
}

void SlurmOptions::take_all() {
  check_memory();
  const auto gives_way = [&](const Asked& one, const Asked& other) {
    const std::string_view name = one.directive->name;
    if (kind_of(name) != kind_of(other.directive->name)) return false;
    // For a node, a cpu or a GPU: what a variable says does not come before what a script says in
    // another way.
    const bool is_otherwise = kind_of(name) == "mem" && name != other.directive->name;
    return is_otherwise ? one.by == SaidBy::Variable : &one < &other;
  };
  for (auto one = asked_.begin(); one != asked_.end(); ++one) {
    if (std::any_of(asked_.begin(), asked_.end(),
                    [&](const Asked& other) { return gives_way(*one, other); }))
      continue;
    where_ = one->where;
    std::string_view ours = one->directive->option_of_submit();
    ours = ours.substr(0, ours.find('='));
    if (one->by != SaidBy::Script && !ours.empty()) terms_.settled.push_back(ours);
    if (one->by != SaidBy::Script && one->directive->name.starts_with("ntasks"))
      terms_.settled.emplace_back("--ntasks");
    if (one->by != SaidBy::Script && one->directive->name == "dependency")
      terms_.settled.insert(terms_.settled.end(), kDependencyOptions.begin(),
                            kDependencyOptions.end());
    const Terms before = terms_;
    try {
      take(*one);
    } catch (const std::invalid_argument&) {
      const bool holds_elsewhere =
          std::find(said_beside_.begin(), said_beside_.end(), ours) != said_beside_.end();
      if (!holds_elsewhere) throw;
      terms_ = before;
    }
  }
}

/// Of some an empty value, such as one of a variable that is not set, is none.
bool SlurmOptions::is_nothing_said(std::string_view name, const Said& said) {
  static constexpr std::array<std::string_view, 14> kNames{
      "account", "array", "chdir",     "constraint", "dependency", "error", "exclude",
      "gpus",    "input", "mail-user", "licenses",   "nodelist",   "qos",   "reservation"};
  return said.has_value && said.value.empty() &&
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void SlurmOptions::take(const Asked& asked) {
  const auto& [directive_of, said, where, by] = asked;
  const Directive& directive = *directive_of;
  if (is_nothing_said(directive.name, said)) {
    terms_.held.push_back(said.text);
    return;
  }
  if (directive.fate == Fate::Refused) refuse(said.text, directive.what);
  put_variables(directive.name, said);
  if (directive.fate == Fate::LeftOut) {
    terms_.is_parsable = terms_.is_parsable || directive.name == "parsable";
    // sbatch heeds it in no line of a script.
    const bool is_callers = by == SaidBy::Caller && directive.name == "quiet";
    terms_.is_quiet = terms_.is_quiet || is_callers;
    terms_.left_out.push_back(said.text);
    return;
  }
  MaybeWords words;
  if (const Reader reader = reader_of(directive.name)) {
    words = reader(*this, said);
  } else {
    const std::string option(directive.option_of_submit());
    words = directive.argument == Argument::None ? Words{option}
                                                 : Words{option, value_for(option, said.value)};
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
  terms_.options.insert(terms_.options.end(), words->begin(), words->end());
}

void SlurmOptions::put_variables(std::string_view name, const Said& said) {
  const auto* const known = std::find_if(kVariables.begin(), kVariables.end(),
                                         [&](const auto& one) { return one.first == name; });
  if (known == kVariables.end() || (name == "export" && said.value == "ALL")) return;
  std::string value = said.has_value ? said.value : "1";
  if (name == "open-mode") value = value.substr(0, 1);
  if (name == "get-user-env") value = "1";
  if (name == "mem-per-gpu") value = std::to_string(parse_size(memory_of(value)).value_or(0) >> 20);
  terms_.variables.emplace_back(known->second, value);
  if (name == "export") terms_.variables.emplace_back("SLURM_GET_USER_ENV", "1");
  if (value == "nomultithread") terms_.variables.emplace_back("SLURM_THREADS_PER_CORE", "1");
}

template <MaybeWords (SlurmOptions::*Member)(const SlurmOptions::Said&)>
MaybeWords SlurmOptions::by(SlurmOptions& options, const Said& said) {
  return (options.*Member)(said);
}

SlurmOptions::Reader SlurmOptions::reader_of(std::string_view name) {
  using S = SlurmOptions;
  static constexpr std::array<std::pair<std::string_view, Reader>, 29> kReaders{
      {{"array", by<&S::array>},
       {"job-name", by<&S::job_name>},
       // It is in the job's variables.
       {"comment", [](S&, const Said&) { return MaybeWords(Words{}); }},
       {"cpus-per-task", by<&S::cpus>},
       {"ntasks", [](S& o, const Said& said) { return count_words(said.value, o.terms_.tasks); }},
       {"nodes", by<&S::nodes>},
       {"ntasks-per-node",
        [](S& o, const Said& said) { return count_words(said.value, o.terms_.tasks_per_node); }},
       {"mem", by<&S::memory>},
       {"mem-per-cpu", by<&S::memory_per_cpu>},
       {"mem-per-gpu", by<&S::memory_per_gpu>},
       {"cpus-per-gpu",
        [](S& o, const Said& said) { return count_words(said.value, o.terms_.cpus_per_gpu); }},
       {"time", [](S&, const Said& said) { return time_words("--time", said.value); }},
       {"time-min", [](S&, const Said& said) { return time_words("--time-request", said.value); }},
       {"gpus", by<&S::gpus_of_all>},
       {"gpus-per-node", [](S&, const Said& said) { return gpu_words(said.value); }},
       {"gpus-per-task", by<&S::gpus_per_task>},
       {"gres", by<&S::gres>},
       {"output", [](S&, const Said& said) { return file_words("--stdout", said.value); }},
       {"error", [](S&, const Said& said) { return file_words("--stderr", said.value); }},
       {"input", by<&S::input>},
       {"open-mode", by<&S::open_mode>},
       {"dependency", by<&S::dependency>},
       {"nice", by<&S::nice>},
       {"signal", by<&S::signal>},
       {"export", by<&S::export_list>},
       {"exclusive", by<&S::exclusive>},
       {"tmp", [](S&, const Said& said) { return size_words("--disk", said.value); }},
       {"mail-type", by<&S::mail_type>},
       {"mail-user", by<&S::mail_user>}}};
  for (const auto& [known, reader] : kReaders)
    if (known == name) return reader;
  return nullptr;
}

/// With `%0` as many at once as may be; brackets, as squeue shows them, mean nothing.
MaybeWords SlurmOptions::array(const Said& said) {
  std::string value = said.value;
  std::erase_if(value, [](char c) { return c == '[' || c == ']'; });
  return Words{"--array", value.ends_with("%0") ? value.substr(0, value.size() - 2) : value};
}

MaybeWords SlurmOptions::cpus(const Said& said) {
  if (!count_words(said.value, cpus_per_task_)) return std::nullopt;
  terms_.says_cpus = true;
  return Words{"--cpus", said.value};
}

MaybeWords SlurmOptions::job_name(const Said& said) {
  terms_.has_no_name = said.value.empty();
  if (terms_.has_no_name) return Words{};
  return Words{"--name", value_for("--name", said.value)};
}

/// `2`, `2-4`: the least of them is enough.
MaybeWords SlurmOptions::nodes(const Said& said) {
  const std::size_t dash = std::min(said.value.find('-'), said.value.size());
  const auto least = small_number(std::string_view(said.value).substr(0, dash));
  const auto most = dash < said.value.size()
                        ? small_number(std::string_view(said.value).substr(dash + 1))
                        : least;
  if (!least || !most || *most < *least) return std::nullopt;
  terms_.nodes = *least;
  if (*least == 1) return Words{};
  return Words{"--nodes", std::to_string(*least)};
}

MaybeWords SlurmOptions::memory(const Said& said) {
  if (number_in<std::uint64_t>(said.value) == 0U) return Words{"--mem", "all"};
  return size_words("--mem", said.value);
}

MaybeWords SlurmOptions::memory_per_cpu(const Said& said) {
  const auto bytes = parse_size(memory_of(said.value));
  if (!bytes) return std::nullopt;
  if (*bytes == 0) return Words{"--mem", "all"};
  terms_.memory_per_cpu = *bytes;
  terms_.memory_otherwise = true;
  return Words{};
}

MaybeWords SlurmOptions::memory_per_gpu(const Said& said) {
  const auto bytes = parse_size(memory_of(said.value));
  if (!bytes || *bytes == 0) return std::nullopt;
  terms_.memory_per_gpu = *bytes;
  terms_.memory_otherwise = true;
  return Words{};
}

MaybeWords SlurmOptions::gpus_of_all(const Said& said) {
  gpus_of_all_ = gpu_count(said.value).value_or("");
  return gpu_words(said.value);
}

MaybeWords SlurmOptions::gpus_per_task(const Said& said) {
  gpus_per_task_ = gpu_count(said.value).value_or("");
  return gpu_words(said.value);
}

MaybeWords SlurmOptions::gres(const Said& said) {
  if (said.value == "none" || said.value == "NONE") return Words{};
  std::string_view value = said.value;
  if (value.starts_with("gres/")) value.remove_prefix(5);
  if (value != "gpu" && !value.starts_with("gpu:")) return std::nullopt;
  return gpu_words(value);
}

MaybeWords SlurmOptions::input(const Said& said) {
  if (said.value == "none") return Words{};
  // Only what writes knows where it runs.
  if (said.value.find("%N") != std::string::npos) return std::nullopt;
  return file_words("--stdin", said.value);
}

MaybeWords SlurmOptions::open_mode(const Said& said) {
  for (const std::string_view mode : {"truncate", "append"})
    if (!said.value.empty() && mode.starts_with(said.value))
      return Words{"--open-mode", std::string(mode)};
  return std::nullopt;
}

MaybeWords SlurmOptions::dependency(const Said& said) {
  try {
    return slurm_dependency(said.value);
  } catch (const std::invalid_argument& error) {
    refuse(said.text, error.what());
  }
}

MaybeWords SlurmOptions::nice(const Said& said) {
  std::string_view value = said.has_value ? std::string_view(said.value) : "100";
  const bool is_negative = value.starts_with('-');
  if (is_negative) value.remove_prefix(1);
  const auto number = number_in<std::uint64_t>(value);
  if (!number || *number > 2'147'483'645) return std::nullopt;
  const auto most = std::min<std::uint64_t>(*number, 1'000'000);
  return Words{"--priority", (is_negative || most == 0 ? "" : "-") + std::to_string(most)};
}

MaybeWords SlurmOptions::signal(const Said& said) {
  std::string_view value = said.value;
  // `R:` is for reservations; both letters may stand there.
  const std::size_t colon = value.find(':');
  const std::string_view letters = value.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (letters.find_first_not_of("BR") != std::string_view::npos) return std::nullopt;
  terms_.signals_steps = letters.find('B') == std::string_view::npos;
  if (colon != std::string_view::npos) value.remove_prefix(colon + 1);
  const std::size_t at = std::min(value.find('@'), value.size());
  terms_.signal = upper_case(std::string(value.substr(0, at)));
  const auto before = at < value.size() ? number_in<std::uint64_t>(value.substr(at + 1)) : 60;
  if (terms_.signal.starts_with("SIG")) terms_.signal.erase(0, 3);
  if (!before || *before > 65'535 || !is_signal(terms_.signal)) return std::nullopt;
  terms_.signal_before = *before;
  return Words{};
}

MaybeWords SlurmOptions::export_list(const Said& said) {
  const bool is_none = said.value.empty() || said.value == "NIL";
  return Words{"--export", is_none ? "NONE" : said.value};
}

MaybeWords SlurmOptions::exclusive(const Said& said) {
  // Of whom else: nobody's tasks but the user's own are there, so what is meant is other batch jobs.
  if (said.has_value && said.value != "user") return std::nullopt;
  exclusive_ = !said.has_value;
  return Words{};
}

MaybeWords SlurmOptions::mail_type(const Said& said) {
  for (const std::string& type : split_at(said.value, ',')) {
    if (type == "NONE") continue;
    if (type == "END" || type == "ALL") {
      terms_.mails = true;
    } else if (type == "FAIL" || type == "TIME_LIMIT" || type == "INVALID_DEPEND") {
      terms_.mails_failures = true;
    } else if (type == "BEGIN" || type == "REQUEUE" || type == "STAGE_OUT" ||
               type == "ARRAY_TASKS" || type.starts_with("TIME_LIMIT_")) {
      terms_.left_out.push_back("--mail-type=" + type);
    } else {
      return std::nullopt;
    }
  }
  return Words{};
}

MaybeWords SlurmOptions::mail_user(const Said& said) {
  terms_.mail_users = split_at(said.value, ',');
  return Words{};
}

/// How many processes on how many nodes (sbatch(1), --nodes, --ntasks, --ntasks-per-node): those of
/// one node.
std::uint64_t SlurmOptions::spread_tasks() {
  const std::uint32_t each = terms_.tasks_per_node;
  // More than any task has, and no overflow.
  constexpr std::uint64_t kMost = 1'000'001;
  if (terms_.tasks == 0)
    terms_.tasks = static_cast<std::uint32_t>(std::min(kMost, std::uint64_t{each} * terms_.nodes));
  if (terms_.nodes == 1 && terms_.tasks < 2) return 1;
  if (terms_.tasks == 0) terms_.tasks = terms_.nodes;
  const std::uint32_t asked = terms_.nodes;
  if (each != 0 && asked > 1) terms_.nodes = std::max(asked, (terms_.tasks + each - 1) / each);
  terms_.nodes = std::min(terms_.nodes, terms_.tasks);
  const std::string nodes = std::to_string(terms_.nodes);
  if (terms_.nodes != asked) terms_.options.insert(terms_.options.end(), {"--nodes", nodes});
  if (terms_.tasks > 1)
    terms_.options.insert(terms_.options.end(), {"--ntasks", std::to_string(terms_.tasks)});
  return (terms_.tasks + terms_.nodes - 1) / terms_.nodes;
}

/// GPUs of a node, where they are said for all nodes or for each process.
void SlurmOptions::spread_gpus(std::uint64_t tasks_of_node) {
  const auto add = [&](const std::string& said, std::uint64_t count) {
    const std::size_t kind = said.rfind(':') + 1;  // 0: none is said
    terms_.options.insert(terms_.options.end(),
                          {"--gpus", said.substr(0, kind) + std::to_string(count)});
  };
  if (!gpus_per_task_.empty() && tasks_of_node > 1)
    add(gpus_per_task_, count_in(gpus_per_task_) * tasks_of_node);
  if (gpus_of_all_.empty() || terms_.nodes == 1) return;
  const std::uint64_t all = count_in(gpus_of_all_);
  if (all % terms_.nodes != 0)
    refuse("--gpus=" + gpus_of_all_, "each node has as many; say how many with --gpus-per-node");
  add(gpus_of_all_, all / terms_.nodes);
}

Terms SlurmOptions::finish() {
  take_all();
  add_mails(terms_);
  Words& options = terms_.options;
  const auto add = [&](const char* option, const std::string& value) {
    options.emplace_back(option);
    options.push_back(value);
  };
  const std::uint64_t tasks = spread_tasks();
  spread_gpus(tasks);
  if (terms_.cpus_per_gpu != 0 && terms_.says_cpus)
    throw std::invalid_argument("--cpus-per-gpu is mutually exclusive with --cpus-per-task");
  // However many cpus are said, before or behind it.
  if (exclusive_) add("--cpus", "all");
  const std::uint64_t cpus = tasks * std::max(1U, cpus_per_task_);
  if (!exclusive_ && tasks > 1 && terms_.cpus_per_gpu == 0) add("--cpus", std::to_string(cpus));
  return std::move(terms_);
}

}  // namespace hpcbatch::batch
