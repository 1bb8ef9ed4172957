// The tables of qstat.
#include "pbs_commands/listing.hpp"

#include "pbs_commands/commands.hpp"
#include "slurm_commands/times.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace hpcbatch::pbs_commands {
namespace {

using slurm_commands::long_duration;

struct Cell {
  std::string text;
  std::size_t width;
  bool right{false};
  bool is_cut{true};  ///< ids are not: programs look for them
};

template <std::size_t Size>
std::string row_of(const std::array<Cell, Size>& cells) {
  std::string row;
  for (const Cell& cell : cells) {
    std::string text = cell.is_cut ? cell.text.substr(0, cell.width) : cell.text;
    const std::size_t missing = cell.width > text.size() ? cell.width - text.size() : 0;
    text.insert(cell.right ? 0 : text.size(), missing, ' ');
    row += (row.empty() ? "" : " ") + text;
  }
  return row + "\n";
}

/// `01:02` of hours and minutes.
std::string hours_and_minutes(double seconds) {
  const std::string whole = long_duration(seconds);
  return whole.substr(0, whole.rfind(':'));
}

std::string time_used(const PbsJob& job) {
  return job.job.started && !job.is_array ? long_duration(job.job.cpu_s) : "0";
}

std::string memory_asked(const PbsJob& job) {
  return job.job.memory == 0 ? "--" : std::to_string(job.job.memory >> 20U) + "mb";
}

std::string elapsed(const PbsJob& job, const Viewed& viewed) {
  if (!job.job.started || job.is_array) return "--";
  return hours_and_minutes(job.job.ended.value_or(viewed.now) - *job.job.started);
}

/// How many there are in each state; of an array each task counts.
struct StateCounts {
  std::uint64_t queued{0}, held{0}, running{0}, exiting{0};
  std::uint64_t total() const { return queued + held + running + exiting; }
  void add(const PbsJob& job) {
    queued += job.queued;
    held += job.held;
    running += job.running;
    exiting += job.exiting;
    if (job.is_array) return;
    const char state = state_of(job);
    queued += state == 'Q' ? 1 : 0;
    held += state == 'H' ? 1 : 0;
    running += state == 'R' ? 1 : 0;
    exiting += state == 'E' ? 1 : 0;
  }
};

std::string number(std::uint64_t count) {
  return std::to_string(count);
}

}  // namespace

std::string short_table(const std::vector<PbsJob>& jobs, const Viewed& viewed) {
  if (jobs.empty()) return "";
  std::string text =
      "Job id            Name             User              Time Use S Queue\n"
      "----------------  ---------------- ----------------  -------- - -----\n";
  for (const PbsJob& job : jobs)
    text += row_of(std::array<Cell, 6>{{{id_of(job), 17, false, false},
                                        {job.job.name, 16},
                                        {viewed.user, 16},
                                        {time_used(job), 9, true},
                                        {std::string(1, state_of(job)), 1},
                                        {queue_of(job, viewed), 16}}});
  return text;
}

std::string long_table(const std::vector<PbsJob>& jobs, const Viewed& viewed) {
  if (jobs.empty()) return "";
  std::string text =
      std::string("\n") + kServer +
      ": \n"
      "                                                            Req'd  Req'd   Elap\n"
      "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time\n"
      "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----\n";
  for (const PbsJob& job : jobs) {
    const auto& limit = job.job.time_limit;
    text += row_of(std::array<Cell, 11>{{{id_of(job), 15, false, false},
                                         {viewed.user, 8},
                                         {queue_of(job, viewed), 8},
                                         {job.job.name, 10},
                                         {"--", 6, true},
                                         {"1", 3, true},
                                         {std::to_string(cpus_of(job.job)), 3, true},
                                         {memory_asked(job), 6, true},
                                         {limit ? hours_and_minutes(*limit) : "--", 5, true},
                                         {std::string(1, state_of(job)), 1},
                                         {elapsed(job, viewed), 5, true}}});
  }
  return text;
}

std::string server_table(const std::vector<PbsJob>& jobs) {
  StateCounts counts;
  for (const PbsJob& job : jobs) counts.add(job);
  return "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n"
         "---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n" +
         row_of(std::array<Cell, 10>{{{kServer, 16},
                                      {"0", 5, true},
                                      {number(counts.total()), 5, true},
                                      {number(counts.queued), 5, true},
                                      {number(counts.running), 5, true},
                                      {number(counts.held), 5, true},
                                      {"0", 5, true},
                                      {"0", 5, true},
                                      {number(counts.exiting), 5, true},
                                      {"Active", 11}}});
}

std::string queue_table(const std::vector<PbsJob>& jobs, const Viewed& viewed) {
  std::map<std::string, StateCounts> queues{{viewed.default_partition, {}}};
  for (const PbsJob& job : jobs) queues[queue_of(job, viewed)].add(job);
  std::string text =
      "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n"
      "---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n";
  for (const auto& [name, counts] : queues)
    text += row_of(std::array<Cell, 12>{{{name, 16},
                                         {"0", 5, true},
                                         {number(counts.total()), 5, true},
                                         {"yes", 3},
                                         {"yes", 3},
                                         {number(counts.queued), 5, true},
                                         {number(counts.running), 5, true},
                                         {number(counts.held), 5, true},
                                         {"0", 5, true},
                                         {"0", 5, true},
                                         {number(counts.exiting), 5, true},
                                         {"Exec", 4}}});
  return text;
}

}  // namespace hpcbatch::pbs_commands
