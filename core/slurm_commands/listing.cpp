#include "slurm_commands/listing.hpp"

#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace hpcbatch::slurm_commands {
namespace {

using Value = std::string (*)(const Job&, const Viewed&);

std::string or_null(const std::string& text) {
  return text.empty() ? "(null)" : text;
}

std::string cpus_text(const Job& job) {
  return std::to_string(cpus_of(job));
}

std::string moment_or(const std::optional<double>& time, const Viewed& viewed) {
  return time ? moment(*time, viewed.time_format) : "N/A";
}

double ran(const Job& job, const Viewed& viewed) {
  if (!job.started) return 0;
  return job.ended.value_or(viewed.now) - *job.started;
}

std::string time_limit(const Job& job, const Viewed&) {
  return job.time_limit ? short_duration(*job.time_limit) : "UNLIMITED";
}

std::string time_left(const Job& job, const Viewed& viewed) {
  if (!job.time_limit) return "UNLIMITED";
  return short_duration(*job.time_limit - ran(job, viewed));
}

/// It is known where one runs; one that waits has what keeps it in brackets instead.
std::string nodes_or_reason(const Job& job, const Viewed&) {
  if (job.state == JobState::Pending) return "(" + job.reason + ")";
  return has_ended(job.state) && job.state != JobState::Completed && job.reason != "None"
             ? "(" + job.reason + ")"
             : job.node;
}

std::string dependency_text(const Job& job, const Viewed&) {
  if (job.after.empty() || job.state != JobState::Pending) return "(null)";
  std::string text;
  for (const std::string& id : job.after) {
    std::uint64_t number = 0;
    std::from_chars(id.data(), id.data() + id.size(), number);
    text += (text.empty() ? "" : ",") + std::string("afterok:") +
            std::to_string(kBatchNumbers + number) + "(unfulfilled)";
  }
  return text;
}

std::string partition_text(const Job& job, const Viewed& viewed) {
  return job.partition.empty() ? viewed.default_partition : job.partition;
}

std::string end_text(const Job& job, const Viewed& viewed) {
  if (job.ended || !job.started || !job.time_limit) return moment_or(job.ended, viewed);
  return moment(*job.started + *job.time_limit, viewed.time_format);
}

/// A value of squeue under the names of `--format` and `--Format`.
struct Named {
  char letter;  ///< 0: none
  std::string_view name, title, long_title;
  Value value;
};

// NOLINTNEXTLINE(cert-err58-cpp): functions without state
const Named kNamed[] = {
    {'a', "account", "ACCOUNT", "ACCOUNT",
     [](const Job& job, const Viewed&) { return or_null(job.account); }},
    {'A', "jobid", "JOBID", "JOBID",
     [](const Job& job, const Viewed&) { return std::to_string(number_of(job)); }},
    {'b', "gres", "TRES_PER_NODE", "TRES_PER_NODE",
     [](const Job& job, const Viewed&) { return job.gpus.empty() ? "N/A" : job.gpus; }},
    {0, "tres-per-node", "TRES_PER_NODE", "TRES_PER_NODE",
     [](const Job& job, const Viewed&) { return job.gpus.empty() ? "N/A" : job.gpus; }},
    {'B', "batchhost", "EXEC_HOST", "EXEC_HOST",
     [](const Job& job, const Viewed&) { return job.node.empty() ? "n/a" : job.node; }},
    {'c', "mincpus", "MIN_CPUS", "MIN_CPUS",
     [](const Job& job, const Viewed&) { return cpus_text(job); }},
    {'C', "numcpus", "CPUS", "CPUS", [](const Job& job, const Viewed&) { return cpus_text(job); }},
    {'d', "mintmpdisk", "MIN_TMP_DISK", "MIN_TMP_DISK",
     [](const Job& job, const Viewed&) { return job.disk == 0 ? "0" : memory_text(job.disk); }},
    {'D', "numnodes", "NODES", "NODES", [](const Job&, const Viewed&) { return std::string("1"); }},
    {'e', "endtime", "END_TIME", "END_TIME", end_text},
    {'E', "dependency", "DEPENDENCY", "DEPENDENCY", dependency_text},
    {'f', "feature", "FEATURES", "FEATURES",
     [](const Job& job, const Viewed&) { return or_null(job.constraint); }},
    {'F', "arrayjobid", "ARRAY_JOB_ID", "ARRAY_JOB_ID",
     [](const Job& job, const Viewed&) { return std::to_string(array_number_of(job)); }},
    {'g', "groupname", "GROUP", "GROUP",
     [](const Job&, const Viewed& viewed) { return viewed.group; }},
    {'G', "groupid", "GROUP", "GROUP",
     [](const Job&, const Viewed& viewed) { return std::to_string(viewed.gid); }},
    {'h', "oversubscribe", "OVER_SUBSCRIBE", "OVER_SUBSCRIBE",
     [](const Job&, const Viewed&) { return std::string("OK"); }},
    {'i', "jobarrayid", "JOBID", "JOBID",
     [](const Job& job, const Viewed&) { return job_id(job); }},
    {'j', "name", "NAME", "NAME", [](const Job& job, const Viewed&) { return job.name; }},
    {'k', "comment", "COMMENT", "COMMENT",
     [](const Job& job, const Viewed&) { return or_null(job.comment); }},
    {'K', "arraytaskid", "ARRAY_TASK_ID", "ARRAY_TASK_ID",
     [](const Job& job, const Viewed&) {
       const std::string text = array_task_id(job);
       return text.empty() ? "N/A" : text;
     }},
    {'l', "timelimit", "TIME_LIMIT", "TIME_LIMIT", time_limit},
    {'L', "timeleft", "TIME_LEFT", "TIME_LEFT", time_left},
    {'m', "minmemory", "MIN_MEMORY", "MIN_MEMORY",
     [](const Job& job, const Viewed&) { return memory_text(job.memory); }},
    {'M', "timeused", "TIME", "TIME",
     [](const Job& job, const Viewed& viewed) { return short_duration(ran(job, viewed)); }},
    {'n', "reqnodes", "REQ_NODES", "REQ_NODES",
     [](const Job&, const Viewed&) { return std::string(); }},
    {'N', "nodelist", "NODELIST", "NODELIST",
     [](const Job& job, const Viewed&) { return job.node; }},
    {'o', "command", "COMMAND", "COMMAND", [](const Job& job, const Viewed&) { return job.name; }},
    {'p', "priority", "PRIORITY", "PRIORITY",
     [](const Job& job, const Viewed&) {
       return std::to_string(static_cast<double>(job.priority));
     }},
    {'P', "partition", "PARTITION", "PARTITION", partition_text},
    {'q', "qos", "QOS", "QOS",
     [](const Job& job, const Viewed&) { return job.qos.empty() ? "normal" : job.qos; }},
    {'Q', "prioritylong", "PRIORITY", "PRIORITY",
     [](const Job& job, const Viewed&) { return std::to_string(job.priority); }},
    {'r', "reason", "REASON", "REASON", [](const Job& job, const Viewed&) { return job.reason; }},
    {'R', "reasonlist", "NODELIST(REASON)", "NODELIST(REASON)", nodes_or_reason},
    {'S', "starttime", "START_TIME", "START_TIME",
     [](const Job& job, const Viewed& viewed) { return moment_or(job.started, viewed); }},
    {'t', "statecompact", "ST", "ST",
     [](const Job& job, const Viewed&) { return std::string(words_of(job.state).letters); }},
    {'T', "state", "STATE", "STATE",
     [](const Job& job, const Viewed&) { return std::string(words_of(job.state).word); }},
    {'u', "username", "USER", "USER", [](const Job&, const Viewed& viewed) { return viewed.user; }},
    {'U', "userid", "USER", "USER",
     [](const Job&, const Viewed& viewed) { return std::to_string(viewed.uid); }},
    {'v', "reservation", "RESERVATION", "RESERVATION",
     [](const Job& job, const Viewed&) { return or_null(job.reservation); }},
    {'V', "submittime", "SUBMIT_TIME", "SUBMIT_TIME",
     [](const Job& job, const Viewed& viewed) { return moment_or(job.submitted, viewed); }},
    {'w', "wckey", "WCKEY", "WCKEY",
     [](const Job&, const Viewed&) { return std::string("(null)"); }},
    {'W', "licenses", "LICENSES", "LICENSES",
     [](const Job&, const Viewed&) { return std::string("(null)"); }},
    {'x', "excnodes", "EXC_NODES", "EXC_NODES",
     [](const Job&, const Viewed&) { return std::string(); }},
    {'X', "corespec", "CORE_SPEC", "CORE_SPEC",
     [](const Job&, const Viewed&) { return std::string("N/A"); }},
    {'Y', "schednodes", "SCHEDNODES", "SCHEDNODES",
     [](const Job&, const Viewed&) { return std::string("(null)"); }},
    {'z', "sct", "S:C:T", "S:C:T", [](const Job&, const Viewed&) { return std::string("*:*:*"); }},
    {'Z', "workdir", "WORK_DIR", "WORK_DIR",
     [](const Job& job, const Viewed&) { return job.directory; }},
    {0, "exit_code", "EXIT_CODE", "EXIT_CODE",
     [](const Job& job, const Viewed&) { return std::to_string(job.exit_code); }},
    {0, "restartcnt", "RESTART_COUNT", "RESTART_COUNT",
     [](const Job& job, const Viewed&) { return std::to_string(job.restarts); }},
    {0, "numtasks", "TASKS", "TASKS", [](const Job&, const Viewed&) { return std::string("1"); }},
};

std::string lower(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), [](char letter) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  });
  return word;
}

Column column_of(const Named& named, const Viewed& viewed) {
  Column column;
  column.title = named.title;
  column.value = [value = named.value, viewed](const Job& job) { return value(job, viewed); };
  return column;
}

const Named* by_letter(char letter) {
  const auto* const at = std::find_if(std::begin(kNamed), std::end(kNamed),
                                      [&](const Named& one) { return one.letter == letter; });
  return at == std::end(kNamed) ? nullptr : at;
}

std::string fitted(std::string text, const Column& column) {
  if (column.width == 0) return text;
  if (text.size() >= column.width) return text.substr(0, column.width);
  const std::string blanks(column.width - text.size(), ' ');
  return column.right ? blanks + text : text + blanks;
}

std::string joined(const std::vector<Column>& columns,
                   const std::function<std::string(const Column&)>& text_of) {
  std::string line;
  for (const Column& column : columns) {
    if (column.value) line += fitted(text_of(column), column);
    line += column.suffix;
  }
  return line;
}

}  // namespace

std::vector<Column> squeue_columns(std::string_view format, const Viewed& viewed) {
  std::vector<Column> columns;
  Column before;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      (columns.empty() ? before : columns.back()).suffix += format[at++];
      continue;
    }
    bool right = false;
    std::size_t width = 0;
    for (++at; at < format.size(); ++at) {
      if (format[at] == '.')
        right = true;
      else if (std::isdigit(static_cast<unsigned char>(format[at])) != 0)
        width = width * 10 + static_cast<std::size_t>(format[at] - '0');
      else
        break;
    }
    if (at == format.size()) break;
    const Named* named = by_letter(format[at]);
    if (named == nullptr) {
      throw CommandFailed("squeue: error: Invalid job format specification: " +
                          std::string(1, format[at]));
    }
    ++at;
    columns.push_back(column_of(*named, viewed));
    columns.back().width = std::min<std::size_t>(width, 4096);
    columns.back().right = right;
  }
  if (!before.suffix.empty()) columns.insert(columns.begin(), before);
  return columns;
}

std::vector<Column> squeue_long_columns(std::string_view format, const Viewed& viewed) {
  constexpr std::size_t kWidth = 20;
  std::vector<Column> columns;
  for (const std::string& word : split_at(format, ',')) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::string name = lower(std::string_view(word).substr(0, colon));
    const auto* const named = std::find_if(std::begin(kNamed), std::end(kNamed),
                                           [&](const Named& one) { return one.name == name; });
    if (named == std::end(kNamed))
      throw CommandFailed("squeue: error: Invalid job format specification: " + word);
    Column column = column_of(*named, viewed);
    column.title = named->long_title;
    column.width = kWidth;
    std::string_view rest = std::string_view(word).substr(std::min(colon + 1, word.size()));
    if (rest.starts_with('.')) {
      column.right = true;
      rest.remove_prefix(1);
    }
    std::size_t width = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), width);
    if (error == std::errc{}) {
      column.width = std::min<std::size_t>(width, 4096);
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }
    column.suffix = rest;
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string title_line(const std::vector<Column>& columns) {
  return joined(columns, [](const Column& column) { return column.title; });
}

std::string line_of(const std::vector<Column>& columns, const Job& job) {
  return joined(columns, [&](const Column& column) { return column.value(job); });
}

namespace {

/// What is told by its amount and not by its text; 0 of all others.
double amount_by(char letter, const Job& job, const Viewed& viewed) {
  switch (letter) {
    case 'S':
      return job.started.value_or(0);
    case 'V':
      return job.submitted.value_or(0);
    case 'e':
      return job.ended.value_or(0);
    case 'M':
      return ran(job, viewed);
    case 'C':
    case 'c':
      return job.cpus;
    case 'm':
      return static_cast<double>(job.memory);
    case 'p':
    case 'Q':
      return static_cast<double>(job.priority);
    case 'i':
    case 'A':
    case 'F':
      return static_cast<double>(job.id);
    default:
      return 0;
  }
}

bool comes_before(const Named& named, const Job& one, const Job& other, const Viewed& viewed) {
  const double a = amount_by(named.letter, one, viewed), b = amount_by(named.letter, other, viewed);
  if (a != b || a != 0) return a < b;
  return named.value(one, viewed) < named.value(other, viewed);
}

}  // namespace

void sort_jobs(std::vector<Job>& jobs, std::string_view by, const Viewed& viewed) {
  // The last key first: the order of those that are the same stays.
  std::vector<std::string> keys = split_at(by, ',');
  std::reverse(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    const bool turned = key.starts_with('-');
    const Named* named = by_letter(key.back());
    if (named == nullptr) throw CommandFailed("squeue: error: Invalid sort specification: " + key);
    std::stable_sort(jobs.begin(), jobs.end(), [&](const Job& a, const Job& b) {
      return turned ? comes_before(*named, b, a, viewed) : comes_before(*named, a, b, viewed);
    });
  }
}

}  // namespace hpcbatch::slurm_commands
