#include "slurm_commands/options.hpp"

#include "batch/directives.hpp"

#include <algorithm>

namespace hpcbatch::slurm_commands {
namespace {

using Takes = Option::Takes;

[[noreturn]] void misused(const OptionTable& table, const std::string& what) {
  const std::string command(table.command);
  // As these exit where an option is none of theirs.
  const int code = table.stops_at_word ? 255 : 1;
  throw CommandFailed(
      command + ": " + what + "\nTry \"" + command + " --help\" for more information", code);
}

class Parser {
 public:
  Parser(const OptionTable& table, const std::vector<std::string>& words)
      : table_(table), words_(words) {}

  Parsed parse() && {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "--") {
        parsed_.before_dashes = parsed_.words.size();
        take_rest();
      } else if (word.starts_with("--")) {
        take_long(word);
      } else if (word.size() > 1 && word[0] == '-') {
        take_letters(word);
      } else {
        parsed_.words.push_back(word);
        if (table_.stops_at_word) take_rest();
      }
    }
    return std::move(parsed_);
  }

 private:
  void take_rest() {
    parsed_.words.insert(parsed_.words.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_),
                         words_.end());
    at_ = words_.size();
  }

  const Option& named(const std::string& name) const {
    std::vector<const Option*> begins;
    for (const Option& option : table_.options) {
      if (option.name == name) return option;
      if (option.name.starts_with(name)) begins.push_back(&option);
    }
    if (begins.empty()) misused(table_, "unrecognized option '--" + name + "'");
    if (begins.size() > 1) {
      std::string possible;
      for (const Option* option : begins) possible += " '--" + std::string(option->name) + "'";
      misused(table_, "option '--" + name + "' is ambiguous; possibilities:" + possible);
    }
    return *begins.front();
  }

  void take_long(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const Option& option = named(word.substr(2, equals - 2));
    const bool has_value = equals < word.size();
    if (option.takes == Takes::Nothing && has_value)
      misused(table_, "option '--" + std::string(option.name) + "' doesn't allow an argument");
    if (has_value) return add(option, word.substr(equals + 1));
    if (option.takes != Takes::Value) return add(option, "");
    if (at_ == words_.size())
      misused(table_, "option '--" + std::string(option.name) + "' requires an argument");
    add(option, words_[at_++]);
  }

  void take_letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const auto option = std::find_if(table_.options.begin(), table_.options.end(),
                                       [&](const Option& one) { return one.letter == word[i]; });
      if (option == table_.options.end())
        misused(table_, "invalid option -- '" + word.substr(i, 1) + "'");
      if (option->takes == Takes::Nothing) {
        add(*option, "");
        continue;
      }
      std::string value = word.substr(i + 1);
      // Behind a letter `=` is often written where it is not meant to be a part of the value.
      if (value.empty() && option->takes == Takes::Value) {
        if (at_ == words_.size())
          misused(table_, "option requires an argument -- '" + word.substr(i, 1) + "'");
        value = words_[at_++];
      }
      return add(*option, value);
    }
  }

  void add(const Option& option, const std::string& value) {
    if (option.use == Use::Refused) {
      const std::string command(table_.command);
      throw CommandFailed(command + ": error: --" + std::string(option.name) +
                          " has nothing like it for tasks of hpcbatch; leave it out, or hand this "
                          "to the cluster itself: HPCBATCH_SLURM_REAL=1 " +
                          command + " ...");
    }
    if (option.use == Use::Here) parsed_.options.emplace_back(option.name, value);
  }

  const OptionTable& table_;
  const std::vector<std::string>& words_;
  std::size_t at_{0};
  Parsed parsed_;
};

}  // namespace

bool Parsed::has(std::string_view name) const {
  return value(name).has_value();
}

std::optional<std::string> Parsed::value(std::string_view name) const {
  const auto at = std::find_if(options.rbegin(), options.rend(),
                               [&](const auto& one) { return one.first == name; });
  return at == options.rend() ? std::nullopt : std::optional(at->second);
}

std::vector<std::string> Parsed::list(std::string_view name) const {
  std::vector<std::string> all;
  for (const auto& [key, value] : options) {
    if (key != name) continue;
    for (std::string& one : split_at(value, ',')) all.push_back(std::move(one));
  }
  return all;
}

Parsed parse_options(const OptionTable& table, const std::vector<std::string>& words) {
  return Parser(table, words).parse();
}

namespace {

constexpr auto kNothing = Takes::Nothing;
constexpr auto kValue = Takes::Value;
constexpr auto kMaybe = Takes::Maybe;
constexpr auto kIgnored = Use::Ignored;
constexpr auto kRefused = Use::Refused;

/// What scripts say, too, is handed on to their reader: it knows what changes nothing and what is
/// refused.
std::vector<Option> options_of_scripts() {
  std::vector<Option> options;
  for (const batch::Directive& directive : batch::slurm_directives()) {
    Takes takes = kNothing;
    if (directive.argument == batch::Argument::Needed) takes = kValue;
    if (directive.argument == batch::Argument::Optional) takes = kMaybe;
    options.push_back({directive.letter, directive.name, takes});
  }
  options.push_back({0, "real"});
  return options;
}

constexpr Option kSqueue[] = {
    {'a', "all", kNothing, kIgnored},
    {'A', "account", kValue},
    {'h', "noheader"},
    {'i', "iterate", kValue},
    {'j', "jobs", kMaybe},
    {'l', "long"},
    {'L', "licenses", kValue, kRefused},
    {'M', "clusters", kValue},
    {'n', "name", kValue},
    {'o', "format", kValue},
    {'O', "Format", kValue},
    {'p', "partition", kValue},
    {'P', "priority", kNothing, kIgnored},
    {'q', "qos", kValue},
    {'r', "array"},
    {'R', "reservation", kValue, kRefused},
    {'s', "steps", kMaybe},
    {'S', "sort", kValue},
    {'t', "states", kValue},
    {'u', "user", kValue},
    {'v', "verbose", kNothing, kIgnored},
    {'V', "version"},
    {'w', "nodelist", kValue},
    {0, "array-unique", kNothing, kIgnored},
    {0, "federation", kNothing, kIgnored},
    {0, "help"},
    {0, "hide", kNothing, kIgnored},
    {0, "json", kMaybe},
    {0, "local", kNothing, kIgnored},
    {0, "me"},
    {0, "real"},
    {0, "sibling", kNothing, kIgnored},
    {0, "start"},
    {0, "usage"},
};

constexpr Option kSacct[] = {
    {'a', "allusers", kNothing, kIgnored},
    {'A', "accounts", kValue},
    {'b', "brief"},
    {'B', "batch-script", kNothing, kRefused},
    {'c', "completion", kNothing, kIgnored},
    {'D', "duplicates", kNothing, kIgnored},
    {'e', "helpformat"},
    {'E', "endtime", kValue},
    {'f', "file", kValue, kRefused},
    {'F', "flags", kValue, kIgnored},
    {'g', "group", kValue, kRefused},
    {'h', "help"},
    {'i', "nnodes", kValue, kRefused},
    {'I', "ncpus", kValue, kRefused},
    {'j', "jobs", kValue},
    {'k', "timelimit-min", kValue, kRefused},
    {'K', "timelimit-max", kValue, kRefused},
    {'l', "long"},
    {'L', "allclusters", kNothing, kIgnored},
    {'M', "clusters", kValue},
    {'n', "noheader"},
    {'N', "nodelist", kValue},
    {'o', "format", kValue},
    {'O', "filter", kValue, kRefused},
    {'p', "parsable"},
    {'P', "parsable2"},
    {'q', "qos", kValue},
    {'r', "partition", kValue},
    {'s', "state", kValue},
    {'S', "starttime", kValue},
    {'T', "truncate", kNothing, kIgnored},
    {'u', "user", kValue},
    {'v', "verbose", kNothing, kIgnored},
    {'V', "version"},
    {'W', "wckeys", kValue, kRefused},
    {'x', "associations", kValue, kRefused},
    {'X', "allocations"},
    {0, "array", kNothing, kIgnored},
    {0, "delimiter", kValue},
    {0, "federation", kNothing, kIgnored},
    {0, "json", kMaybe},
    {0, "local", kNothing, kIgnored},
    {0, "name", kValue},
    {0, "noconvert"},
    {0, "real"},
    {0, "uid", kValue},
    {0, "units", kValue},
    {0, "usage"},
    {0, "use-local-uid", kNothing, kIgnored},
};

constexpr Option kScancel[] = {
    {'A', "account", kValue},
    {'b', "batch"},
    {'c', "cron", kNothing, kRefused},
    {'f', "full"},
    {'H', "hurry", kNothing, kIgnored},
    {'i', "interactive"},
    {'M', "clusters", kValue, kIgnored},
    {'n', "jobname", kValue},
    {0, "name", kValue},
    {'p', "partition", kValue},
    {'q', "qos", kValue},
    {'Q', "quiet"},
    {'R', "reservation", kValue, kRefused},
    {'s', "signal", kValue},
    {'t', "state", kValue},
    {'u', "user", kValue},
    {'v', "verbose"},
    {'V', "version"},
    {'w', "nodelist", kValue},
    {0, "ctld", kNothing, kIgnored},
    {0, "help"},
    {0, "me"},
    {0, "sibling", kValue, kRefused},
    {0, "usage"},
    {0, "wckey", kValue, kRefused},
};

constexpr Option kScontrol[] = {
    {'a', "all", kNothing, kIgnored},
    {'d', "details"},
    {'F', "future", kNothing, kIgnored},
    {'h', "help"},
    {'M', "clusters", kValue, kIgnored},
    {'o', "oneliner"},
    {'Q', "quiet", kNothing, kIgnored},
    {'u', "uid", kValue, kIgnored},
    {'v', "verbose", kNothing, kIgnored},
    {'V', "version"},
    {0, "federation", kNothing, kIgnored},
    {0, "hide", kNothing, kIgnored},
    {0, "json", kMaybe},
    {0, "local", kNothing, kIgnored},
    {0, "sibling", kNothing, kIgnored},
    {0, "usage"},
};

constexpr Option kSinfo[] = {
    {'a', "all", kNothing, kIgnored},
    {'d', "dead", kNothing, kRefused},
    {'e', "exact", kNothing, kIgnored},
    {'h', "noheader"},
    {'i', "iterate", kValue, kRefused},
    {'l', "long"},
    {'M', "clusters", kValue, kIgnored},
    {'n', "nodes", kValue},
    {'N', "Node"},
    {'o', "format", kValue},
    {'O', "Format", kValue},
    {'p', "partition", kValue},
    {'r', "responding", kNothing, kIgnored},
    {'R', "list-reasons"},
    {'s', "summarize"},
    {'S', "sort", kValue, kIgnored},
    {'t', "states", kValue},
    {'T', "reservation", kNothing, kRefused},
    {'v', "verbose", kNothing, kIgnored},
    {'V', "version"},
    {0, "help"},
    {0, "hide", kNothing, kIgnored},
    {0, "json", kMaybe, kRefused},
    {0, "local", kNothing, kIgnored},
    {0, "usage"},
};

constexpr Option kSacctmgr[] = {
    {'i', "immediate", kNothing, kIgnored},
    {'n', "noheader"},
    {'o', "oneliner", kNothing, kIgnored},
    {'p', "parsable"},
    {'P', "parsable2"},
    {'Q', "quiet", kNothing, kIgnored},
    {'r', "readonly", kNothing, kIgnored},
    {'s', "associations", kNothing, kIgnored},
    {'v', "verbose", kNothing, kIgnored},
    {'V', "version"},
    {0, "help"},
    {0, "usage"},
};

constexpr Option kSshare[] = {
    {'a', "all", kNothing, kIgnored},
    {'A', "accounts", kValue, kIgnored},
    {'e', "helpformat", kNothing, kIgnored},
    {'h', "noheader"},
    {'l', "long", kNothing, kIgnored},
    {'m', "partition", kNothing, kIgnored},
    {'M', "clusters", kValue, kIgnored},
    {'n', "noheader"},
    {'o', "format", kValue},
    {'p', "parsable"},
    {'P', "parsable2"},
    {'u', "users", kValue, kIgnored},
    {'U', "Users", kNothing, kIgnored},
    {'v', "verbose", kNothing, kIgnored},
    {'V', "version"},
    {0, "help"},
    {0, "usage"},
};

constexpr Option kSrun[] = {
    {'A', "account", kValue, kIgnored},
    {'b', "begin", kValue, kRefused},
    {'c', "cpus-per-task", kValue},
    {'C', "constraint", kValue, kIgnored},
    {'d', "dependency", kValue, kRefused},
    {'D', "chdir", kValue},
    {'e', "error", kValue},
    {'E', "preserve-env", kNothing, kIgnored},
    {'G', "gpus", kValue},
    {'H', "hold", kNothing, kRefused},
    {'i', "input", kValue},
    {'I', "immediate", kMaybe},
    {'J', "job-name", kValue, kIgnored},
    {'k', "no-kill", kNothing, kIgnored},
    {'K', "kill-on-bad-exit", kMaybe},
    {'l', "label"},
    {'m', "distribution", kValue, kIgnored},
    {'M', "clusters", kValue, kIgnored},
    {'n', "ntasks", kValue},
    {'N', "nodes", kValue},
    {'o', "output", kValue},
    {'O', "overcommit"},
    {'p', "partition", kValue, kIgnored},
    {'q', "qos", kValue, kIgnored},
    {'Q', "quiet"},
    {'r', "relative", kValue, kIgnored},
    {'s', "oversubscribe", kNothing, kIgnored},
    {'t', "time", kValue},
    {'u', "unbuffered", kNothing, kIgnored},
    {'v', "verbose", kNothing, kIgnored},
    {'V', "version"},
    {'w', "nodelist", kValue},
    {'W', "wait", kValue},
    {'x', "exclude", kValue, kIgnored},
    {0, "accel-bind", kValue, kIgnored},
    {0, "array", kValue, kRefused},
    {0, "bcast", kMaybe, kRefused},
    {0, "cpu-bind", kValue},
    {0, "exact"},
    {0, "exclusive", kMaybe},
    {0, "export", kValue},
    {0, "gpu-bind", kValue, kIgnored},
    {0, "gpus-per-task", kValue},
    {0, "gpus-per-node", kValue},
    {0, "gres", kValue},
    {0, "help"},
    {0, "hint", kValue, kIgnored},
    {0, "jobid", kValue},
    {0, "mem", kValue},
    {0, "mem-bind", kValue, kIgnored},
    {0, "mem-per-cpu", kValue},
    {0, "mpi", kValue},
    {0, "multi-prog"},
    {0, "ntasks-per-node", kValue, kIgnored},
    {0, "open-mode", kValue},
    {0, "overlap"},
    {0, "propagate", kMaybe, kIgnored},
    {0, "signal", kValue},
    {0, "pty", kMaybe, kRefused},
    {0, "task-epilog", kValue, kRefused},
    {0, "task-prolog", kValue, kRefused},
    {0, "threads-per-core", kValue, kIgnored},
    {0, "usage"},
};

}  // namespace

const OptionTable& sbatch_options() {
  static const std::vector<Option> options = options_of_scripts();
  static const OptionTable table{"sbatch", options, true};
  return table;
}
const OptionTable& squeue_options() {
  static const OptionTable table{"squeue", kSqueue};
  return table;
}
const OptionTable& sacct_options() {
  static const OptionTable table{"sacct", kSacct};
  return table;
}
const OptionTable& scancel_options() {
  static const OptionTable table{"scancel", kScancel};
  return table;
}
const OptionTable& scontrol_options() {
  static const OptionTable table{"scontrol", kScontrol};
  return table;
}
const OptionTable& sinfo_options() {
  static const OptionTable table{"sinfo", kSinfo};
  return table;
}
const OptionTable& sacctmgr_options() {
  static const OptionTable table{"sacctmgr", kSacctmgr};
  return table;
}
const OptionTable& sshare_options() {
  static const OptionTable table{"sshare", kSshare};
  return table;
}
const OptionTable& srun_options() {
  static const OptionTable table{"srun", kSrun, true};
  return table;
}

}  // namespace hpcbatch::slurm_commands
