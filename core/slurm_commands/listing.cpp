#include "slurm_commands/listing.hpp"

#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
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

std::string cpus_of_each(const Job& job, const Viewed&) {
  return std::to_string(std::max(1L, cpus_of(job) / static_cast<long>(job.tasks)));
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
  return has_ended(job.state) && job.state != JobState::Completed &&
                 job.state != JobState::Cancelled && job.reason != "None"
             ? "(" + job.reason + ")"
             : job.node;
}

std::string partition_text(const Job& job, const Viewed& viewed) {
  return job.partition.empty() ? viewed.default_partition : job.partition;
}

std::string end_text(const Job& job, const Viewed& viewed) {
  return moment_or(end_of(job), viewed);
}

/// A value of squeue under the names of `--format` and `--Format`.
struct Named {
  char letter;  ///< 0: none
  std::string_view name, title, long_title;
  Value value;
  std::string_view fixed{};  ///< where there is no `value`: what it always is here
};

std::string value_of(const Named& named, const Job& job, const Viewed& viewed) {
  return named.value == nullptr ? std::string(named.fixed) : named.value(job, viewed);
}

std::string tres_of(const Job& job) {
  return "cpu=" + cpus_text(job) + (job.memory == 0 ? "" : ",mem=" + memory_text(job.memory)) +
         ",node=1,billing=" + cpus_text(job);
}

std::string eligible_text(const Job& job, const Viewed& viewed) {
  return moment_or(eligible_since(job), viewed);
}

// NOLINTNEXTLINE(cert-err58-cpp): functions without state
const Named kNamed[] =
    {
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
        {'c', "mincpus", "MIN_CPUS", "MIN_CPUS", cpus_of_each},
        {'C', "numcpus", "CPUS", "CPUS",
         [](const Job& job, const Viewed&) { return cpus_text(job); }},
        {'d', "mintmpdisk", "MIN_TMP_DISK", "MIN_TMP_DISK",
         [](const Job& job, const Viewed&) { return job.disk == 0 ? "0" : memory_text(job.disk); }},
        {'D', "numnodes", "NODES", "NODES",
         [](const Job&, const Viewed&) { return std::string("1"); }},
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
         [](const Job& job, const Viewed&) {
           return memory_text(job.memory_per_cpu != 0 ? job.memory_per_cpu : job.memory);
         }},
        {'M', "timeused", "TIME", "TIME",
         [](const Job& job, const Viewed& viewed) { return short_duration(ran(job, viewed)); }},
        {'n', "reqnodes", "REQ_NODES", "REQ_NODES",
         [](const Job&, const Viewed&) { return std::string(); }},
        {'N', "nodelist", "NODELIST", "NODELIST",
         [](const Job& job, const Viewed&) { return job.node; }},
        {'o', "command", "COMMAND", "COMMAND",
         [](const Job& job, const Viewed&) { return command_text(job); }},
        {0, "stdin", "STDIN", "STDIN",
         [](const Job& job, const Viewed&) { return job.input.empty() ? "/dev/null" : job.input; }},
        {0, "stdout", "STDOUT", "STDOUT", [](const Job& job, const Viewed&) { return job.output; }},
        {0, "stderr", "STDERR", "STDERR", [](const Job& job, const Viewed&) { return job.error; }},
        {'p', "priority", "PRIORITY", "PRIORITY",
         [](const Job& job, const Viewed&) {
           char text[32];
           std::snprintf(text, sizeof text, "%.14f",
                         static_cast<double>(priority_of(job)) / 4294967295.0);
           return std::string(text);
         }},
        {'P', "partition", "PARTITION", "PARTITION", partition_text},
        {'q', "qos", "QOS", "QOS",
         [](const Job& job, const Viewed&) { return job.qos.empty() ? "normal" : job.qos; }},
        {'Q', "prioritylong", "PRIORITY", "PRIORITY",
         [](const Job& job, const Viewed&) { return std::to_string(priority_of(job)); }},
        {'r', "reason", "REASON", "REASON",
         [](const Job& job, const Viewed&) { return job.reason; }},
        {'R', "reasonlist", "NODELIST(REASON)", "NODELIST(REASON)", nodes_or_reason},
        {'S', "starttime", "START_TIME", "START_TIME",
         [](const Job& job, const Viewed& viewed) { return moment_or(start_of(job), viewed); }},
        {'t', "statecompact", "ST", "ST",
         [](const Job& job, const Viewed&) { return std::string(words_of(job.state).letters); }},
        {'T', "state", "STATE", "STATE",
         [](const Job& job, const Viewed&) { return std::string(words_of(job.state).word); }},
        {'u', "username", "USER", "USER",
         [](const Job&, const Viewed& viewed) { return viewed.user; }},
        {'U', "userid", "UID", "UID",
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
        {'z', "sct", "S:C:T", "S:C:T",
         [](const Job&, const Viewed&) { return std::string("*:*:*"); }},
        {'Z', "workdir", "WORK_DIR", "WORK_DIR",
         [](const Job& job, const Viewed&) { return job.directory; }},
        {'H', "sockets", "SOCKETS_PER_NODE", "SOCKETS_PER_NODE", nullptr, "*"},
        {'I', "cores", "CORES_PER_SOCKET", "CORES_PER_SOCKET", nullptr, "*"},
        {'J', "threads", "THREADS_PER_CORE", "THREADS_PER_CORE", nullptr, "*"},
        {'O', "contiguous", "CONTIGUOUS", "CONTIGUOUS", nullptr, "0"},
        {0, "batchflag", "BATCH_FLAG", "BATCH_FLAG", nullptr, "1"},
        {0, "boardspernode", "BOARDS_PER_NODE", "BOARDS_PER_NODE", nullptr, "0"},
        {0, "burstbuffer", "BURST_BUFFER", "BURST_BUFFER", nullptr, "(null)"},
        {0, "burstbufferstate", "BURST_BUFFER_STATE", "BURST_BUFFER_STATE", nullptr, "(null)"},
        {0, "cluster", "CLUSTER", "CLUSTER", nullptr, "hpcbatch"},
        {0, "clusterfeature", "CLUSTER_FEATURES", "CLUSTER_FEATURES", nullptr, "(null)"},
        {0, "container", "CONTAINER", "CONTAINER", nullptr, "(null)"},
        {0, "cpus-per-tres", "CPUS_PER_TRES", "CPUS_PER_TRES", nullptr, "N/A"},
        {0, "deadline", "DEADLINE", "DEADLINE",
         [](const Job& job, const Viewed& viewed) { return moment_or(job.deadline, viewed); }},
        {0, "delayboot", "DELAY_BOOT", "DELAY_BOOT", nullptr, "0:00"},
        {0, "derivedec", "DERIVED_EC", "DERIVED_EC", nullptr, "0"},
        {0, "hetjobid", "HET_JOB_ID", "HET_JOB_ID", nullptr, "N/A"},
        {0, "hetjoboffset", "HET_JOB_OFFSET", "HET_JOB_OFFSET", nullptr, "N/A"},
        {0, "hetjobidset", "HET_JOB_ID_SET", "HET_JOB_ID_SET", nullptr, "N/A"},
        {0, "maxnodes", "MAX_NODES", "MAX_NODES", nullptr, "1"},
        {0, "mcslabel", "MCSLABEL", "MCSLABEL", nullptr, "(null)"},
        {0, "mem-per-tres", "MEM_PER_TRES", "MEM_PER_TRES", nullptr, "N/A"},
        {0, "mintime", "TIME_MIN", "TIME_MIN",
         [](const Job& job, const Viewed&) { return short_duration(job.time_request.value_or(0)); }},
        {0, "network", "NETWORK", "NETWORK", nullptr, "(null)"},
        {0, "ntperboard", "NTASKS_PER_BOARD", "NTASKS_PER_BOARD", nullptr, "0"},
        {0, "ntpercore", "NTASKS_PER_CORE", "NTASKS_PER_CORE", nullptr, "N/A"},
        {0, "ntpernode", "NTASKS_PER_NODE", "NTASKS_PER_NODE", nullptr, "0"},
        {0, "ntpersocket", "NTASKS_PER_SOCKET", "NTASKS_PER_SOCKET", nullptr, "N/A"},
        {0, "origin", "ORIGIN", "ORIGIN", nullptr, "NA"},
        {0, "originraw", "ORIGIN_RAW", "ORIGIN_RAW", nullptr, "NA"},
        {0, "preempttime", "PREEMPT_TIME", "PREEMPT_TIME", nullptr, "N/A"},
        {0, "prefer", "PREFER", "PREFER", nullptr, "(null)"},
        {0, "profile", "PROFILE", "PROFILE", nullptr, "NotSet"},
        {0, "reboot", "REBOOT", "REBOOT", nullptr, "0"},
        {0, "reqswitch", "REQ_SWITCH", "REQ_SWITCH", nullptr, "0"},
        {0, "requeue", "REQUEUE", "REQUEUE",
         [](const Job& job, const Viewed&) { return std::string(job.is_requeued ? "1" : "0"); }},
        {0, "resizetime", "RESIZE_TIME", "RESIZE_TIME", nullptr, "N/A"},
        {0, "selectjobinfo", "", "", nullptr, ""},
        {0, "siblingsactive", "ACTIVE_SIBLINGS", "ACTIVE_SIBLINGS", nullptr, "NA"},
        {0, "siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", "ACTIVE_SIBLINGS_RAW", nullptr, "NA"},
        {0, "siblingsviable", "VIABLE_SIBLINGS", "VIABLE_SIBLINGS", nullptr, "NA"},
        // As Slurm spells it.
        {0, "siblingsviableraw", "VIALBLE_SIBLINGS_RAW", "VIALBLE_SIBLINGS_RAW", nullptr, "NA"},
        {0, "sperboard", "SOCKETS_PER_BOARD", "SOCKETS_PER_BOARD", nullptr, "0"},
        {0, "system_comment", "SYSTEM_COMMENT", "SYSTEM_COMMENT", nullptr, "(null)"},
        {0, "tres-bind", "TRES_BIND", "TRES_BIND", nullptr, "N/A"},
        {0, "tres-freq", "TRES_FREQ", "TRES_FREQ", nullptr, "N/A"},
        {0, "tres-per-job", "TRES_PER_JOB", "TRES_PER_JOB", nullptr, "N/A"},
        {0, "tres-per-socket", "TRES_PER_SOCKET", "TRES_PER_SOCKET", nullptr, "N/A"},
        {0, "tres-per-task", "TRES_PER_TASK", "TRES_PER_TASK", nullptr, "N/A"},
        {0, "wait4switch", "WAIT4SWITCH", "WAIT4SWITCH", nullptr, "0:00"},
        {0, "allocnodes", "ALLOC_NODES", "ALLOC_NODES", nullptr, "hpcbatch"},
        {0, "allocsid", "ALLOC_SID", "ALLOC_SID", nullptr, "0"},
        {0, "associd", "ASSOC_ID", "ASSOC_ID", nullptr, "0"},
        {'y', "nice", "NICE", "NICE",
         [](const Job& job, const Viewed&) { return std::to_string(-job.priority); }},
        {0, "gres", "TRES_PER_NODE", "TRES_PER_NODE",
         [](const Job& job, const Viewed&) { return job.gpus.empty() ? "N/A" : job.gpus; }},
        {0, "maxcpus", "MAX_CPUS", "MAX_CPUS",
         [](const Job& job, const Viewed&) { return cpus_text(job); }},
        {0, "cpus-per-task", "CPUS_PER_TASK", "CPUS_PER_TASK", cpus_of_each},
        {0, "tres-alloc", "TRES_ALLOC", "TRES_ALLOC",
         [](const Job& job, const Viewed&) { return tres_of(job); }},
        {0, "accruetime", "ACCRUE_TIME", "ACCRUE_TIME", eligible_text},
        {0, "eligibletime", "ELIGIBLE_TIME", "ELIGIBLE_TIME", eligible_text},
        {0, "lastschedeval", "LAST_SCHED_EVAL", "LAST_SCHED_EVAL",
         [](const Job& job, const Viewed& viewed) {
           return moment_or(job.started ? job.started : job.submitted, viewed);
         }},
        {0, "pendingtime", "PENDING_TIME", "PENDING_TIME",
         [](const Job& job, const Viewed& viewed) {
           return std::to_string(static_cast<long>(std::max(
               0.0, job.started.value_or(viewed.now) - job.submitted.value_or(viewed.now))));
         }},
        {0, "exit_code", "EXIT_CODE", "EXIT_CODE",
         [](const Job& job, const Viewed&) {
           // As wait(2) has it.
           return std::to_string(job.exit_code * 256 + job.signal);
         }},
        {0, "restartcnt", "RESTART_COUNT", "RESTART_COUNT",
         [](const Job& job, const Viewed&) { return std::to_string(job.restarts); }},
        {0, "numtasks", "TASKS", "TASKS",
         [](const Job& job, const Viewed&) { return std::to_string(job.tasks); }},
};

Column column_of(const Named& named, const Viewed& viewed) {
  Column column;
  column.title = named.title;
  column.is_span =
      named.letter != 0 && std::string_view("lLM").find(named.letter) != std::string_view::npos;
  column.value = [&named, viewed](const Job& job) { return value_of(named, job, viewed); };
  return column;
}

const Named* by_letter(char letter) {
  const auto* const at = std::find_if(std::begin(kNamed), std::end(kNamed),
                                      [&](const Named& one) { return one.letter == letter; });
  return at == std::end(kNamed) ? nullptr : at;
}

std::string fitted(std::string text, const Column& column, bool may_be_cut) {
  if (column.width == 0 || (!may_be_cut && text.size() > column.width)) return text;
  if (text.size() >= column.width) return text.substr(0, column.width);
  const std::string blanks(column.width - text.size(), ' ');
  return column.right ? blanks + text : text + blanks;
}

std::string joined(const std::vector<Column>& columns,
                   const std::function<std::string(const Column&)>& text_of, bool is_title) {
  std::string line;
  for (const Column& column : columns) {
    const bool may_be_cut = is_title || !column.right || !column.is_span;
    if (column.value) line += fitted(text_of(column), column, may_be_cut);
    line += column.suffix;
  }
  return line;
}

}  // namespace

std::string dependency_text(const Job& job, const Viewed&) {
  if (!waits_for_jobs(job)) return "(null)";
  static const std::map<std::string, std::string> kWords{{"after", "afterok"},
                                                         {"after_any", "afterany"},
                                                         {"after_each", "aftercorr"},
                                                         {"after_start", "after"},
                                                         {"after_failed", "afternotok"}};
  std::string text = job.is_singleton ? "singleton(unfulfilled)" : "";
  for (const Job::Wait& wait : job.after) {
    std::uint64_t number = 0;
    std::uint32_t index = 0;
    const char* const end = wait.id.data() + wait.id.size();
    const char* const dot = std::from_chars(wait.id.data(), end, number).ptr;
    text += text.empty() ? "" : job.one_of_after ? "?" : ",";
    text += kWords.at(wait.how) + ":" + std::to_string(kBatchNumbers + number);
    if (dot != end && std::from_chars(dot + 1, end, index).ec == std::errc{})
      text += "_" + std::to_string(index - 1 + wait.first.value_or(1));
    else if (wait.first)
      text += "_*";
    if (wait.delay > 0) text += "+" + std::to_string(std::lround(wait.delay / 60));
    text += "(unfulfilled)";
  }
  return text;
}

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
    const std::string name = lower_case(word.substr(0, colon));
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
    // A sign alone stands behind what is as long as it is.
    if (error != std::errc{} && !rest.empty()) column.width = 0;
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
  return joined(
      columns, [](const Column& column) { return column.title; }, true);
}

std::string line_of(const std::vector<Column>& columns, const Job& job) {
  return joined(
      columns, [&](const Column& column) { return column.value(job); }, false);
}

namespace {

/// More than any time.
constexpr double kNoLimit = 1e12;

/// What is told by its amount and not by its text; 0 of all others.
double amount_by(char letter, const Job& job, const Viewed& viewed) {
  switch (letter) {
    case 'S':
      return start_of(job).value_or(0);
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
      return static_cast<double>(job.memory_per_cpu != 0 ? job.memory_per_cpu : job.memory);
    case 'l':
      return job.time_limit.value_or(kNoLimit);
    case 'L':
      return job.time_limit.value_or(kNoLimit) - ran(job, viewed);
    case 'i':
    case 'A':
    case 'F':
      return static_cast<double>(job.id);
    default:
      return 0;
  }
}

bool comes_before(const Named& named, const Job& one, const Job& other, const Viewed& viewed) {
  // Of those that are as urgent what came first is more so, unless it is held.
  const auto urgency = [](const Job& job) {
    const std::int64_t priority = priority_of(job);
    return std::make_pair(priority, priority == 0 ? 0 : -static_cast<std::int64_t>(job.id));
  };
  if (named.letter == 'p' || named.letter == 'Q') return urgency(one) < urgency(other);
  const auto element = [](const Job& job) {
    return std::make_pair(job.id, job.indices.empty() ? 0 : job.indices.ranges().back().first);
  };
  if (named.letter == 'i') return element(one) < element(other);
  const double a = amount_by(named.letter, one, viewed), b = amount_by(named.letter, other, viewed);
  if (a != b || a != 0) return a < b;
  return value_of(named, one, viewed) < value_of(named, other, viewed);
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
