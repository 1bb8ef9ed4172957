#include "batch/pbs_options.hpp"

#include "batch/file_pattern.hpp"
#include "model/batch_number.hpp"
#include "model/item.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/batch_time.hpp>
#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace hpcbatch::batch {
namespace {

using enum Fate;
constexpr auto kAlone = Argument::None;
constexpr auto kWithValue = Argument::Needed;

constexpr std::string_view kOfPilot =
    "it says something of the batch job alone, which is a pilot's";
constexpr std::string_view kOfNodes =
    "tasks do not choose nodes; say what they must have in a line #HPCBATCH, as --constraint";

// More than any task has, and no overflow.
constexpr std::uint64_t kMostTasks = 1'000'001, kMostMemory = std::uint64_t{1} << 50;

constexpr std::array kPbsDirectives{
    Directive{"a", 0, kWithValue, Holds, "`--begin`, of `hhmm[.SS]` and longer forms"},
    Directive{"A", 0, kWithValue, Holds, "`--account`"},
    Directive{"c", 0, kWithValue, LeftOut, "there are no checkpoints"},
    Directive{"C", 0, kWithValue, Refused, "lines begin with #PBS"},
    Directive{"e", 0, kWithValue, Holds, "`--stderr`"},
    Directive{"f", 0, kAlone, LeftOut, kOfPilot},
    Directive{"G", 0, kAlone, Refused, "there are no windows; leave it out"},
    Directive{"h", 0, kAlone, Holds, "`--hold`"},
    Directive{"I", 0, kAlone, Refused,
              "a task has no terminal; hpcbatch run streams what it prints"},
    Directive{"j", 0, kWithValue, Holds, "`oe`: errors go to the output; `eo`: the other way; `n`"},
    Directive{"J", 0, kWithValue, Holds, "`--array`"},
    Directive{"k", 0, kWithValue, LeftOut,
              "what a task prints is kept by hpcbatch, or in its file"},
    Directive{"l walltime", 0, kWithValue, Holds, "`--time`"},
    Directive{"l select", 0, kWithValue, Holds,
              "chunks of one kind, each a node of `--nodes`: `ncpus`, `mem`, `ngpus`, `mpiprocs`, "
              "`ompthreads`"},
    Directive{"l nodes", 0, kWithValue, Holds,
              "Torque's `1`, `2:ppn=4`, `2:ppn=4:gpus=1`: `--nodes`"},
    Directive{"l ncpus", 0, kWithValue, Holds, "`--cpus`"},
    Directive{"l ppn", 0, kWithValue, Holds, "`--cpus`"},
    Directive{"l procs", 0, kWithValue, Holds, "`--cpus`"},
    Directive{"l mem", 0, kWithValue, Holds, "`--mem`"},
    Directive{"l pmem", 0, kWithValue, Holds, "`--mem`, for all cpus"},
    Directive{"l ngpus", 0, kWithValue, Holds, "`--gpus`"},
    Directive{"l gpus", 0, kWithValue, Holds, "`--gpus`"},
    Directive{"l place", 0, kWithValue, Holds,
              "`pack`: all chunks on one node; others change nothing"},
    Directive{"l vmem", 0, kWithValue, LeftOut, "memory is what a task holds, not its addresses"},
    Directive{"l pvmem", 0, kWithValue, LeftOut, "memory is what a task holds, not its addresses"},
    Directive{"l cput", 0, kWithValue, LeftOut, "a task's time is that of the clock"},
    Directive{"l pcput", 0, kWithValue, LeftOut, "a task's time is that of the clock"},
    Directive{"l nice", 0, kWithValue, LeftOut, "a task has its cpus for itself"},
    Directive{"l file", 0, kWithValue, Holds, "`--disk`"},
    Directive{"l min_walltime", 0, kWithValue, Holds, "`--time-request`"},
    Directive{"l max_walltime", 0, kWithValue, Holds, "`--time`"},
    Directive{
        "m", 0, kWithValue, Holds,
        "`--notify mail:` for `e`, `--notify failed:mail:` for `a`; there are no mails at other "
        "times"},
    Directive{"M", 0, kWithValue, Holds, "`--notify`; if -m is missing, only if a task failed"},
    Directive{"N", 0, kWithValue, Holds, "`--name`"},
    Directive{"o", 0, kWithValue, Holds, "`--stdout`"},
    Directive{"p", 0, kWithValue, Holds, "`--priority`"},
    Directive{"P", 0, kWithValue, Refused,
              "projects are said in the configuration, among the options of a site or shape"},
    Directive{"q", 0, kWithValue, Holds, "`--partition`"},
    Directive{"r", 0, kWithValue, Holds, "`n`: `--requeue=no`"},
    Directive{"R", 0, kWithValue, LeftOut,
              "what a task prints is kept by hpcbatch, or in its file"},
    Directive{"S", 0, kWithValue, Holds, "the shell that runs the script"},
    Directive{"t", 0, kWithValue, Holds, "Torque's `--array`"},
    Directive{"u", 0, kWithValue, Refused, "a task runs as who submits it"},
    Directive{"v", 0, kWithValue, Holds, "`--export`"},
    Directive{"V", 0, kAlone, Holds, "your environment goes along anyhow"},
    Directive{"W block", 0, kWithValue, Holds, "`--wait`"},
    Directive{"W depend", 0, kWithValue, Holds,
              "`after`, `afterok`, `afterany` and `afternotok` of tasks of hpcbatch; others are "
              "refused"},
    Directive{"W group_list", 0, kWithValue, LeftOut, "a task runs as who submits it"},
    Directive{"W run_count", 0, kWithValue, LeftOut, kOfPilot},
    Directive{"W sandbox", 0, kWithValue, Refused, "a task runs in a folder of yours; say --cwd"},
    Directive{"W stagein", 0, kWithValue, Refused, "say --input NAME=PATH in a line #HPCBATCH"},
    Directive{"W stageout", 0, kWithValue, Refused, "say --output NAME=PATH in a line #HPCBATCH"},
    Directive{"W umask", 0, kWithValue, Refused, "run umask in the script, or before submit"},
    Directive{"X", 0, kAlone, Refused, "there are no windows; leave it out"},
    Directive{"z", 0, kAlone, LeftOut, "submit prints the id alone"},
};

const Directive* directive_named(std::string_view name) {
  const auto* const found = std::find_if(kPbsDirectives.begin(), kPbsDirectives.end(),
                                         [&](const Directive& one) { return one.name == name; });
  return found == kPbsDirectives.end() ? nullptr : found;
}

/// `2gb`, `100mb`, `5gw`; without a unit bytes.
std::optional<std::uint64_t> pbs_size(std::string_view text) {
  std::string size = upper_case(std::string(text));
  std::uint64_t times = 1;
  if (size.ends_with('W')) times = 8;
  if (size.ends_with('W') || size.ends_with('B')) size.pop_back();
  const auto bytes = parse_size(size);
  if (!bytes) return std::nullopt;
  return *bytes * times;
}

std::pair<std::string_view, std::string_view> parted(std::string_view text, char at) {
  const std::size_t end = std::min(text.find(at), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

/// Calls it with each part; commas and colons within brackets or quotes do not come up.
template <class Use>
void for_each_part(std::string_view list, char separator, Use use) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    use(list.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

std::span<const Directive> pbs_directives() {
  return kPbsDirectives;
}

void PbsOptions::refuse(const std::string& said, std::string_view what) const {
  if (what.empty())
    throw std::invalid_argument(
        where_ + "'" + mark_ + said +
        "' has nothing here that means the same; write a line #HPCBATCH with what you need, or "
        "hand the script to qsub");
  throw std::invalid_argument(refusal_of(where_, mark_ + said, what));
}

void PbsOptions::hold(const std::string& said, const Words& words) {
  const std::string ours = joined(words, " ");
  terms_.held.push_back(said + (ours.empty() ? "" : " as " + ours));
  terms_.options.insert(terms_.options.end(), words.begin(), words.end());
}

void PbsOptions::read(const std::vector<std::string>& words, const std::string& where) {
  where_ = where;
  for (std::size_t at = 0; at < words.size();) {
    const std::string& word = words[at++];
    if (word.size() < 2 || word.front() != '-' || word[1] == '-')
      throw std::invalid_argument(
          std::string(where).append("'").append(word).append("' is no option of qsub"));
    const std::string letter(1, word[1]);
    const bool is_listed = letter == "l" || letter == "W";
    const Directive* directive = directive_named(letter);
    if (directive == nullptr && !is_listed) refuse(word, {});
    std::string said = word, value = word.substr(2);
    if (is_listed || directive->argument == kWithValue) {
      if (value.empty()) {
        if (at >= words.size()) refuse(word, "its value is missing");
        value = words[at++];
        said += " " + value;
      }
    } else if (!value.empty()) {
      refuse(word, "it takes no value");
    }
    if (letter == "l")
      take_resources(said, value);
    else if (letter == "W")
      take_attributes(said, value);
    else
      take(*directive, said, value);
  }
}

void PbsOptions::take(const Directive& directive, const std::string& said,
                      const std::string& value) {
  if (directive.fate == Refused) refuse(said, directive.what);
  if (directive.fate == LeftOut) {
    terms_.is_quiet = terms_.is_quiet || directive.name == "z";
    terms_.left_out.push_back(said);
    return;
  }
  switch (directive.name.front()) {
    case 'a':
      return take_moment(said, value);
    case 'm':
      return take_mails(said, value);
    case 'M':
      terms_.mail_users = split_at(value, ',');
      return hold(said, {});
    case 'r':
      if (value != "y" && value != "n") refuse(said, {});
      return hold(said, {value == "n" ? "--requeue=no" : "--requeue=yes"});
    case 'o':
      return take_file(said, "--stdout", value);
    case 'e':
      return take_file(said, "--stderr", value);
    case 'j':
      return take_join(said, value);
    case 'p':
      return take_priority(said, value);
    case 'S':
      if (value.find_first_of("@:") != std::string::npos) refuse(said, {});
      terms_.interpreter = value;
      return hold(said, {});
    case 'V':
      return hold(said, {});
    case 'v':
      return hold(said, {"--export", "ALL," + value});
    default:
      break;
  }
  const std::string_view what = directive.what;
  const std::size_t begin = what.find('`') + 1;
  const std::string option(what.substr(begin, what.find('`', begin) - begin));
  hold(said,
       directive.argument == kAlone ? Words{option} : Words{option, value_for(option, value)});
}

void PbsOptions::take_file(const std::string& said, const char* option, const std::string& value) {
  constexpr std::string_view kHere = "localhost:";
  const std::string file = value.starts_with(kHere) ? value.substr(kHere.size()) : value;
  if (file.find(':') != std::string::npos)
    refuse(said, "the file would lie on another machine; leave the host out");
  std::string path = as_it_stands(file);
  constexpr std::string_view kIndex = "^array_index^";
  for (std::size_t at = path.find(kIndex); at != std::string::npos; at = path.find(kIndex))
    path.replace(at, kIndex.size(), "{index}");
  hold(said, {option, path});
}

/// `[[[CC]YY]MMDD]hhmm[.SS]` (qsub(1B), -a), as --begin takes it.
void PbsOptions::take_moment(const std::string& said, const std::string& value) {
  const std::size_t dot = std::min(value.find('.'), value.size());
  const std::string digits = value.substr(0, dot);
  const std::string seconds = dot < value.size() ? ":" + value.substr(dot + 1) : "";
  const std::size_t size = digits.size();
  const bool is_good = number_in<std::uint64_t>(digits) &&
                       (seconds.empty() || number_in<std::uint64_t>(seconds.substr(1)));
  if (!is_good || (size != 4 && size != 8 && size != 10 && size != 12))
    refuse(said, "write it as hhmm, MMDDhhmm, YYMMDDhhmm or CCYYMMDDhhmm");
  const auto two = [&](std::size_t from_end) { return digits.substr(size - from_end, 2); };
  std::string moment = two(4) + ":" + two(2) + seconds;
  if (size == 8) moment = two(8) + "/" + two(6) + "-" + moment;
  if (size > 8)
    moment = (size == 12 ? digits.substr(0, 2) : std::string("20")) + two(10) + "-" + two(8) + "-" +
             two(6) + "T" + moment;
  hold(said, {"--begin", moment});
}

void PbsOptions::take_join(const std::string& said, const std::string& value) {
  if (value != "oe" && value != "eo" && value != "n") refuse(said, {});
  joined_ = value;
  hold(said, {});
}

void PbsOptions::take_mails(const std::string& said, const std::string& value) {
  if (value.empty() || value.find_first_not_of("abejn") != std::string::npos) refuse(said, {});
  mails_are_said_ = true;
  terms_.mails = value.find('e') != std::string::npos;
  terms_.mails_failures = value.find('a') != std::string::npos;
  for (const char letter : {'b', 'j'})
    if (value.find(letter) != std::string::npos)
      terms_.left_out.push_back(std::string("-m ") + letter);
  hold(said, {});
}

void PbsOptions::take_priority(const std::string& said, const std::string& value) {
  std::string_view digits = value;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  const auto number = number_in<std::uint64_t>(digits);
  if (!number || *number > 1024) refuse(said, {});
  hold(said, {"--priority=" + (value.starts_with('+') ? value.substr(1) : value)});
}

void PbsOptions::take_resources(const std::string& said, const std::string& list) {
  // A comma may be part of nodes' names alone, which are refused.
  for_each_part(list, ',', [&](std::string_view one) {
    const auto [name, value] = parted(one, '=');
    take_resource(said, std::string(name), std::string(value));
  });
}

void PbsOptions::take_resource(const std::string& said, const std::string& name,
                               const std::string& value) {
  const Directive* directive = directive_named("l " + name);
  if (directive == nullptr) refuse(said, {});
  const std::string own = "-l " + name + "=" + value;
  if (directive->fate == LeftOut) {
    terms_.left_out.push_back(own);
    return;
  }
  if (name == "select") return take_chunk(own, value);
  if (name == "nodes") return take_nodes(own, value);
  if (name == "place") {
    packs_ = std::string_view(value).substr(0, value.find(':')) == "pack";
    return hold(own, {});
  }
  if (name == "walltime" || name == "max_walltime" || name == "min_walltime") {
    const auto time = pbs_time(value);
    if (!time || time->count() == 0) refuse(own, {});
    const char* option = name == "min_walltime" ? "--time-request" : "--time";
    return hold(own, {option, std::to_string(time->count()) + "s"});
  }
  take_amount(own, name, value);
  terms_.held.push_back(own);
}

/// `2:ncpus=2:mem=4gb`; the number may be missing.  It stands in the place of one before it.
void PbsOptions::take_chunk(const std::string& said, std::string_view chunk) {
  cpus_ = gpus_ = memory_ = 0;
  terms_.nodes = 1;
  terms_.tasks = 0;
  is_torque_ = false;
  if (chunk.find('+') != std::string_view::npos)
    refuse(said, "all nodes of a task are alike; say one kind of chunks");
  bool is_first = true;
  for_each_part(chunk, ':', [&](std::string_view one) {
    const auto [name, value] = parted(one, '=');
    if (std::exchange(is_first, false) && name.size() == one.size()) {
      take_count(said, one);
      return;
    }
    take_amount(said, name, std::string(value));
  });
  if (cpus_ == 0) cpus_ = 1;
  terms_.held.push_back(said);
}

void PbsOptions::take_count(const std::string& said, std::string_view text) {
  const auto count = number_in<std::uint64_t>(text);
  if (!count || *count == 0 || *count > 1'000'000) refuse(said, {});
  terms_.nodes = static_cast<std::uint32_t>(*count);
}

/// Torque's.
void PbsOptions::take_nodes(const std::string& said, std::string_view value) {
  terms_.nodes = 1;
  is_torque_ = true;
  if (value.find('+') != std::string_view::npos) refuse(said, kOfNodes);
  bool is_first = true;
  for_each_part(value, ':', [&](std::string_view one) {
    const auto [name, amount] = parted(one, '=');
    if (std::exchange(is_first, false)) {
      if (!number_in<std::uint64_t>(one)) refuse(said, kOfNodes);
      take_count(said, one);
      return;
    }
    if (name.size() == one.size()) refuse(said, kOfNodes);
    take_amount(said, name, std::string(amount));
  });
  terms_.held.push_back(said);
}

void PbsOptions::take_amount(const std::string& said, std::string_view name,
                             const std::string& value) {
  const auto number = number_in<std::uint64_t>(value);
  if (name == "mem" || name == "pmem" || name == "file") {
    const auto bytes = pbs_size(value);
    if (!bytes || *bytes == 0) refuse(said, {});
    if (name == "mem") memory_ = *bytes;
    if (name == "pmem") terms_.memory_per_cpu = *bytes;
    if (name == "file")
      terms_.options.insert(terms_.options.end(), {"--disk", std::to_string(*bytes)});
    return;
  }
  if (!number || *number > 1'000'000) refuse(said, {});
  if (name == "ncpus" || name == "ppn" || name == "procs") {
    if (*number == 0) refuse(said, {});
    cpus_ = *number;
    terms_.says_cpus = true;
  } else if (name == "ngpus" || name == "gpus") {
    gpus_ = *number;
  } else if (name == "mpiprocs") {
    terms_.tasks = static_cast<std::uint32_t>(*number);
  } else if (name == "ompthreads") {
    terms_.options.insert(terms_.options.end(), {"--env", "OMP_NUM_THREADS=" + value});
  } else {
    refuse(said, {});
  }
}

void PbsOptions::take_attributes(const std::string& said, const std::string& list) {
  // `depend=afterok:1,afterany:2` has commas of its own.
  if (list.starts_with("depend=")) return take_dependency(said, std::string_view(list).substr(7));
  for_each_part(list, ',', [&](std::string_view one) {
    const auto [name, value] = parted(one, '=');
    const Directive* directive = directive_named("W " + std::string(name));
    const std::string own = "-W " + std::string(one);
    if (directive == nullptr) refuse(said, {});
    if (directive->fate == Refused) refuse(own, directive->what);
    if (directive->fate == LeftOut) {
      terms_.left_out.push_back(own);
    } else if (name == "depend") {
      refuse(own, "write it as a -W of its own");
    } else {
      hold(own, value == "true" ? Words{"--wait"} : Words{});
    }
  });
}

/// It stands in the place of one before it.
void PbsOptions::take_dependency(const std::string& said, std::string_view text) {
  Words waits, told;
  for_each_part(text, ',', [&](std::string_view one) {
    const std::pair<std::string_view, std::string_view> parts = parted(one, ':');
    const std::string_view kind = parts.first, ids = parts.second;
    const char* option = kind == "afterok"      ? "--after"
                         : kind == "afterany"   ? "--after-any"
                         : kind == "after"      ? "--after-start"
                         : kind == "afternotok" ? "--after-failed"
                                                : nullptr;
    if (option == nullptr || ids.empty())
      refuse(
          said,
          "only after, afterok, afterany and afternotok can be waited for, of tasks of hpcbatch");
    for_each_part(ids, ':', [&](std::string_view job) {
      std::string_view digits = job.substr(0, job.find('.'));
      if (digits.ends_with("[]")) digits.remove_suffix(2);
      const auto id = id_of_batch_number(number_in<std::uint64_t>(digits).value_or(0));
      if (!id)
        refuse(said, "job " + std::string(job) +
                         " is none of hpcbatch's, whose numbers begin with 2000000001");
      waits.insert(waits.end(), {option, std::to_string(id->value)});
      told.push_back("-W depend=" + std::string(kind) + ":" + std::string(job) + " as " +
                     std::string(option) + " " + waits.back());
    });
  });
  dependency_ = std::move(waits);
  dependency_told_ = std::move(told);
}

/// Chunks that are nodes of a task, or parts of its one node.
void PbsOptions::spread() {
  const std::uint64_t chunks = terms_.nodes;
  if (packs_) {
    terms_.nodes = 1;
    cpus_ *= chunks;
    gpus_ *= chunks;
    memory_ = std::min(memory_, kMostMemory / chunks) * chunks;
    terms_.tasks = static_cast<std::uint32_t>(
        std::min(kMostTasks, std::max<std::uint64_t>(1, terms_.tasks) * chunks));
  }
  // Torque's list of nodes has each as often as it has cpus.
  const std::uint64_t each = is_torque_ ? cpus_ : terms_.tasks;
  terms_.tasks = static_cast<std::uint32_t>(
      std::min(kMostTasks, terms_.nodes * std::max<std::uint64_t>(1, each)));
  const auto add = [&](const char* option, std::uint32_t count) {
    if (count > 1) terms_.options.insert(terms_.options.end(), {option, std::to_string(count)});
  };
  add("--nodes", terms_.nodes);
  add("--ntasks", terms_.tasks);
}

Terms PbsOptions::finish() {
  // As qsub does (qsub(1B), -m), but that it writes nobody who has not asked.
  if (!mails_are_said_ && !terms_.mail_users.empty()) terms_.mails_failures = true;
  add_mails(terms_);
  Words& options = terms_.options;
  const auto add = [&](const char* option, std::uint64_t value) {
    options.emplace_back(option);
    options.push_back(std::to_string(value));
  };
  spread();
  if (cpus_ != 0) add("--cpus", cpus_);
  if (memory_ != 0) {
    add("--mem", memory_);
    terms_.memory_per_cpu = 0;
  }
  if (gpus_ != 0) add("--gpus", gpus_);
  options.insert(options.end(), dependency_.begin(), dependency_.end());
  terms_.held.insert(terms_.held.end(), dependency_told_.begin(), dependency_told_.end());
  terms_.joined = joined_;
  return std::move(terms_);
}

}  // namespace hpcbatch::batch
