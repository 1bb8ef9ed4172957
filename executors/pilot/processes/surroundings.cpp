#include "pilot/processes/surroundings.hpp"

#include "pilot/base/files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include <sys/stat.h>

namespace hpcbatch::pilot {
namespace {

constexpr std::array<std::string_view, 13> kPerTask = {
    "TMPDIR",         "OMP_NUM_THREADS",  "HPCBATCH_TASK_ID", "HPCBATCH_TASK_INDEX",
    "HPCBATCH_CPUS",  "HPCBATCH_MEM_MB",  "HPCBATCH_GPUS",    "HPCBATCH_GPU_KIND",
    "HPCBATCH_SITE",  "HPCBATCH_ATTEMPT", "HPCBATCH_METRICS", "HPCBATCH_PILOT",
    "HPCBATCH_NTASKS"};
constexpr std::array<std::string_view, 8> kMinimal = {"HOME", "PATH",   "USER",     "LOGNAME",
                                                      "LANG", "LC_ALL", "LANGUAGE", "SHELL"};

// Of NVIDIA, AMD, OpenCL and Intel, in the order in which they are believed.
constexpr std::array<std::string_view, 4> kDeviceVariables = {
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};

constexpr std::string_view kGpusOfKind = "gpus/";
constexpr std::string_view kPath = "PWD=";

const char* value_of(std::string_view name, char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view line(*environment);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=') {
      return *environment + name.size() + 1;
    }
  }
  return nullptr;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

/// 4 or 0.5.
std::string decimal(std::int64_t amount) {
  std::string text = std::to_string(amount / kWhole);
  if (amount % kWhole != 0) {
    std::string digits = std::to_string(kWhole + amount % kWhole).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }
  return text;
}

}  // namespace

bool is_pilots(std::string_view name) {
  return std::find(kPerTask.begin(), kPerTask.end(), name) != kPerTask.end() ||
         std::find(kDeviceVariables.begin(), kDeviceVariables.end(), name) !=
             kDeviceVariables.end();
}

std::optional<std::string> path_to_correct(const BaseEnvironment& base,
                                           const std::string& directory) {
  const auto line = std::find_if(base.begin(), base.end(),
                                 [](const std::string& one) { return one.starts_with(kPath); });
  if (line == base.end()) return std::nullopt;
  struct stat said {};
  struct stat own {};
  if (::stat(line->c_str() + kPath.size(), &said) == 0 && ::stat(directory.c_str(), &own) == 0 &&
      said.st_dev == own.st_dev && said.st_ino == own.st_ino)
    return std::nullopt;
  return directory;
}

BaseEnvironment base_environment(const wire::Environment& environment) {
  BaseEnvironment lines;
  for (const wire::Variable& variable : environment.variables()) {
    if (!is_pilots(variable.name())) lines.push_back(variable.name() + "=" + variable.value());
  }
  return lines;
}

BaseEnvironment minimal_environment(char* const* own) {
  BaseEnvironment lines;
  for (; *own != nullptr; ++own) {
    const std::string_view line(*own);
    const std::string_view name = line.substr(0, line.find('='));
    if (std::find(kMinimal.begin(), kMinimal.end(), name) != kMinimal.end())
      lines.emplace_back(line);
  }
  return lines;
}

Devices::Devices(unsigned count, char* const* environment)
    : count_(count), variable_(kDeviceVariables.front()) {
  std::string_view rest;
  for (const std::string_view name : kDeviceVariables) {
    const char* value = value_of(name, environment);
    if (value == nullptr) continue;
    variable_ = name;
    rest = value;
    set_ = true;
    break;
  }
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    names_.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!set_) {
    for (unsigned i = 0; i < count; ++i) names_.push_back(std::to_string(i));
  }
}

std::optional<std::size_t> Devices::shown() const {
  return set_ ? std::optional(names_.size()) : std::nullopt;
}

GpuMaker Devices::maker() const {
  if (variable_ == "CUDA_VISIBLE_DEVICES") return GpuMaker::Nvidia;
  return variable_ == "ZE_AFFINITY_MASK" ? GpuMaker::Intel : GpuMaker::Amd;
}

std::string Devices::names(const std::vector<unsigned>& gpus) const {
  std::vector<std::string> words;
  for (const unsigned gpu : gpus) {
    if (gpu < names_.size()) words.push_back(names_[gpu]);
  }
  return joined(words);
}

std::string Devices::numbers(const std::vector<unsigned>& gpus) const {
  const bool numeric = std::all_of(names_.begin(), names_.end(), [](const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  if (numeric) return names(gpus);
  std::vector<std::string> words;
  words.reserve(gpus.size());
  for (const unsigned gpu : gpus) words.push_back(std::to_string(gpu));
  return joined(words);
}

TaskEnvironment::TaskEnvironment(std::shared_ptr<const BaseEnvironment> base,
                                 const std::map<std::string, std::string>& own)
    : base_(std::move(base)) {
  own_.reserve(own.size());
  for (const auto& [name, value] : own) {
    std::string line = name;
    line += '=';
    line += value;
    own_.push_back(std::move(line));
  }
  pointers_.reserve(base_->size() + own_.size() + 1);
  for (const std::string& line : *base_) {
    const std::string_view name = std::string_view(line).substr(0, line.find('='));
    // execve takes what it does not change as if it would.
    if (!own.contains(std::string(name))) pointers_.push_back(const_cast<char*>(line.c_str()));
  }
  for (std::string& line : own_) pointers_.push_back(line.data());
  pointers_.push_back(nullptr);
}

std::vector<std::string> TaskEnvironment::names() const {
  std::vector<std::string> names;
  for (const char* line : pointers_) {
    if (line == nullptr) break;
    const std::string_view text(line);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

const char* TaskEnvironment::find(std::string_view name) const {
  for (const char* line : pointers_) {
    if (line == nullptr) break;
    const std::string_view text(line);
    if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=') {
      return line + name.size() + 1;
    }
  }
  return nullptr;
}

std::string task_id(const wire::Start& start) {
  std::string text = std::to_string(start.attempt().array());
  if (start.attempt().index() != 0 || start.shown_index() != 0)
    text += "." + std::to_string(start.shown_index());
  return text;
}

std::int64_t granted_gpus(const wire::Start& start) {
  for (const wire::Amount& amount : start.granted()) {
    if (amount.name() == "gpus" || amount.name().starts_with(kGpusOfKind)) return amount.value();
  }
  return 0;
}

std::map<std::string, std::string> task_variables(const wire::Start& start,
                                                  const Placement& placement,
                                                  const PilotNames& names, const Devices& devices,
                                                  const std::string& temporary_directory) {
  std::int64_t cpus = kWhole;
  std::int64_t memory = 0;
  std::string gpu_kind;
  for (const wire::Amount& amount : start.granted()) {
    if (amount.name() == "cpus") cpus = amount.value();
    if (amount.name() == "memory") memory = amount.value();
    if (amount.name().starts_with(kGpusOfKind)) gpu_kind = amount.name().substr(kGpusOfKind.size());
  }
  if (start.memory() != 0) memory = start.memory();
  std::int64_t threads = cpus / kWhole;
  // Its processes share the cpus.  On one node scripts often say processes and mean threads.
  if (start.nodes_size() > 1 && start.ntasks() != 0)
    threads = threads * start.nodes_size() / start.ntasks();
  std::map<std::string, std::string> variables{
      {"OMP_NUM_THREADS", std::to_string(std::max<std::int64_t>(1, threads))},
      {"TMPDIR", temporary_directory},
  };
  for (const wire::Variable& variable : start.variables())
    variables[variable.name()] = variable.value();
  variables["HPCBATCH_TASK_ID"] = task_id(start);
  if (start.attempt().index() != 0 || start.shown_index() != 0) {
    variables["HPCBATCH_TASK_INDEX"] =
        std::to_string(start.shown_index() - (start.from_zero() ? 1 : 0));
  }
  variables["HPCBATCH_ATTEMPT"] = std::to_string(start.attempt().number());
  variables["HPCBATCH_CPUS"] = decimal(cpus);
  if (memory > 0)
    variables["HPCBATCH_MEM_MB"] = std::to_string(memory / kWhole / (std::int64_t{1} << 20));
  if (start.ntasks() != 0) variables["HPCBATCH_NTASKS"] = std::to_string(start.ntasks());
  variables["HPCBATCH_GPUS"] = devices.numbers(placement.gpus);
  if (!gpu_kind.empty()) variables["HPCBATCH_GPU_KIND"] = gpu_kind;
  variables["HPCBATCH_PILOT"] = names.pilot;
  variables["HPCBATCH_SITE"] = names.site;
  if (devices.any()) variables[devices.variable()] = devices.names(placement.gpus);
  return variables;
}

namespace {

constexpr const char* kBeforeSetup = "HPCBATCH_BEFORE_SETUP";
constexpr char kEnd = '\1';
// Of the shell that ran the lines.
constexpr std::array<std::string_view, 4> kShells{"_", "SHLVL", "PWD", "OLDPWD"};

using Variables = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

void add_line(Variables& variables, std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || equals == 0) return;
  variables.emplace(line.substr(0, equals), line.substr(equals + 1));
}

Variables read_before(std::string_view text) {
  Variables variables;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kEnd), text.size());
    add_line(variables, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return variables;
}

bool is_tasks(const std::string& name) {
  return !is_pilots(name) && !name.starts_with("HPCBATCH_") &&
         std::find(kShells.begin(), kShells.end(), name) == kShells.end();
}

bool is_list(std::string_view name) {
  // The last two are those of environment modules.
  return name.ends_with("PATH") || name.ends_with("_DIRS") || name == "LOADEDMODULES" ||
         name == "_LMFILES_";
}

Words list_words(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string joined_list(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (&word == &words.front() ? "" : ":") + word;
  return text;
}

}  // namespace

SetupChanges::SetupChanges(std::string_view before_text, char* const* now_lines) {
  if (before_text.empty()) return;
  const Variables before = read_before(before_text);
  Variables now;
  for (; *now_lines != nullptr; ++now_lines) add_line(now, *now_lines);
  for (const auto& [name, value] : now) {
    const auto at = before.find(name);
    if (is_tasks(name) && (at == before.end() || at->second != value))
      compare(name, at == before.end() ? "" : at->second, value);
  }
  for (const auto& [name, value] : before) {
    if (is_tasks(name) && !now.contains(name)) unset_.insert(name);
  }
}

void SetupChanges::compare(const std::string& name, const std::string& before,
                           const std::string& now) {
  if (!is_list(name)) {
    set_[name] = now;
    return;
  }
  ListChange& change = lists_[name];
  const Words old = list_words(before);
  const Words words = list_words(now);
  bool is_front = true;
  for (const std::string& word : words) {
    if (has(old, word)) {
      is_front = false;
    } else {
      (is_front ? change.front : change.back).push_back(word);
    }
  }
  for (const std::string& word : old) {
    if (!has(words, word)) change.gone.push_back(word);
  }
}

void SetupChanges::apply(BaseEnvironment& environment) const {
  if (set_.empty() && lists_.empty() && unset_.empty()) return;
  Variables variables;
  for (const std::string& line : environment) add_line(variables, line);
  for (const auto& [name, value] : set_) variables[name] = value;
  for (const std::string& name : unset_) variables.erase(name);
  for (const auto& [name, change] : lists_) {
    Words words = change.front;
    for (const std::string& word : list_words(variables[name])) {
      if (!has(change.gone, word) && !has(change.front, word) && !has(change.back, word))
        words.push_back(word);
    }
    words.insert(words.end(), change.back.begin(), change.back.end());
    variables[name] = joined_list(words);
  }
  environment.clear();
  for (const auto& [name, value] : variables)
    environment.push_back(std::string(name).append("=").append(value));
}

std::string take_before_setup() {
  const char* text = std::getenv(kBeforeSetup);
  std::string before = text == nullptr ? "" : text;
  ::unsetenv(kBeforeSetup);
  return before;
}

namespace {

/// "0-3,8": the kernel's way to write a set.
std::vector<unsigned> read_list(const std::string& text) {
  std::vector<unsigned> numbers;
  constexpr unsigned kMost = 1U << 16;
  const char* at = text.c_str();
  for (char* end = nullptr; *at != '\0';) {
    const unsigned long first = std::strtoul(at, &end, 10);
    if (end == at) break;
    unsigned long last = first;
    if (*end == '-') last = std::strtoul(end + 1, &end, 10);
    for (unsigned long n = first; n <= last && n < kMost; ++n)
      numbers.push_back(static_cast<unsigned>(n));
    at = *end == ',' ? end + 1 : end;
    if (*at == '\n') break;
  }
  return numbers;
}

}  // namespace

Topology read_topology(const std::vector<unsigned>& cpus, const std::string& root) {
  std::map<unsigned, unsigned> nodes;
  const std::string folder = root + "/devices/system/node/";
  for (const unsigned node : read_list(read_small(folder + "online"))) {
    for (const unsigned cpu :
         read_list(read_small(folder + "node" + std::to_string(node) + "/cpulist")))
      nodes[cpu] = node;
  }
  Topology all;
  for (const unsigned cpu : cpus) {
    const std::vector<unsigned> threads = read_list(read_small(
        root + "/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
    const auto node = nodes.find(cpu);
    // The lowest of its threads stands for the core.
    all.push_back({cpu, node == nodes.end() ? 0 : node->second,
                   threads.empty() ? cpu : *std::min_element(threads.begin(), threads.end())});
  }
  return all;
}

}  // namespace hpcbatch::pilot
