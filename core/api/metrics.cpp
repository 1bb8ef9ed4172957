#include "api/metrics.hpp"

#include "api/answers/metrics_text.hpp"
#include "api/answers/to_json.hpp"
#include "api/api.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <sys/resource.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// In bytes; 0 where it cannot be read.
struct OwnMemory {
  double resident{0}, all{0};
};

OwnMemory own_memory() {
  double all = 0, resident = 0;  // in pages: proc(5)
  std::ifstream("/proc/self/statm") >> all >> resident;
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return {resident * page, all * page};
}

double open_descriptors() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

double in_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// By the names that Prometheus' client libraries give them.
void add_process(MetricsText& text, const EngineFacts& facts) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const OwnMemory memory = own_memory();
  text.counter("process_cpu_seconds_total", "CPU time of the engine in seconds.",
               in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime));
  text.gauge("process_resident_memory_bytes", "Resident memory of the engine in bytes.",
             memory.resident);
  text.gauge("process_virtual_memory_bytes", "Virtual memory of the engine in bytes.", memory.all);
  text.gauge("process_open_fds", "Open file descriptors of the engine.", open_descriptors());
  text.gauge("process_max_fds", "Most file descriptors that the engine may open.",
             static_cast<double>(files.rlim_cur));
  text.gauge("process_start_time_seconds", "Start of the engine in seconds since 1970.",
             seconds(facts.started));
}

double as_number(std::uint64_t count) {
  return static_cast<double>(count);
}

void add_by_failure(MetricsText& text, const std::array<std::uint64_t, kFailures>& counts,
                    std::size_t first) {
  for (std::size_t i = first; i < counts.size(); ++i)
    text.add(as_number(counts[i]), {{"result", kFailureWords[i]}});
}

void add_tasks(MetricsText& text, Runtime& runtime) {
  const TaskCounts now = runtime.engine().counts();
  text.gauge("hpcbatch_tasks", "Tasks that have not ended, by state.");
  text.add(as_number(now.waiting), {{"state", "waiting"}});
  text.add(as_number(now.held), {{"state", "held"}});
  text.add(as_number(now.running), {{"state", "running"}});
  text.add(as_number(now.unknown), {{"state", "unknown"}});
  const store::Happened& happened = runtime.happened();
  text.counter("hpcbatch_tasks_ended_total",
               "Tasks that have ended since the engine started, by result.");
  add_by_failure(text, happened.ended, 0);
  text.counter("hpcbatch_attempts_retried_total",
               "Attempts that failed and were tried again since the engine started, by result.");
  add_by_failure(text, happened.tried_again, 1);
  text.histogram("hpcbatch_task_wait_seconds",
                 "Time from the submission of a task to its first start, in seconds.");
  text.add(happened.spread.wait);
  text.histogram("hpcbatch_task_run_seconds", "Run time of tasks that succeeded, in seconds.");
  text.add(happened.spread.run);
}

/// What pilots of one site have for tasks, and what of that is free.
struct SitePilots {
  std::uint64_t connected{0};
  Resources capacity, free;
};

void add_pilots(MetricsText& text, Runtime& runtime) {
  std::map<std::string_view, SitePilots> sites;
  for (const SiteState& site : runtime.engine().sites().sites()) sites[site.site.name];
  for (const auto& [id, pilot] : runtime.engine().pilots().all()) {
    const auto at = sites.find(pilot.site);
    if (!pilot.connected || at == sites.end()) continue;
    ++at->second.connected;
    at->second.capacity.add(pilot.capacity);
    at->second.free.add(pilot.free);
  }
  const auto family = [&](std::string_view name, std::string_view help, auto&& value) {
    text.gauge(name, help);
    for (const auto& [site, pilots] : sites) text.add(value(pilots), {{"site", site}});
  };
  family("hpcbatch_pilots_connected", "Pilots with a link to the engine.",
         [](const SitePilots& one) { return as_number(one.connected); });
  family("hpcbatch_pilot_cpus", "CPUs that connected pilots have for tasks.",
         [](const SitePilots& one) { return one.capacity.get(kCpus).value(); });
  family("hpcbatch_pilot_free_cpus", "CPUs of connected pilots that no task uses.",
         [](const SitePilots& one) { return one.free.get(kCpus).value(); });
  family("hpcbatch_pilot_memory_bytes", "Memory that connected pilots have for tasks, in bytes.",
         [](const SitePilots& one) { return one.capacity.get(kMemory).value(); });
  family("hpcbatch_pilot_free_memory_bytes",
         "Memory of connected pilots that no task uses, in bytes.",
         [](const SitePilots& one) { return one.free.get(kMemory).value(); });
  family("hpcbatch_pilot_gpus", "GPUs that connected pilots have for tasks.",
         [](const SitePilots& one) { return one.capacity.gpus().value(); });
  family("hpcbatch_pilot_free_gpus", "GPUs of connected pilots that no task uses.",
         [](const SitePilots& one) { return one.free.gpus().value(); });
  text.counter("hpcbatch_rejected_peers_total",
               "Connections to the listeners for pilots that were rejected, by reason.");
  for (const auto& [reason, count] : runtime.rejected_peers().counts())
    text.add(as_number(count), {{"reason", reason}});
}

void add_allocations(MetricsText& text, const SiteTable& table) {
  constexpr std::array kStates{AllocationState::Intended, AllocationState::Submitting,
                               AllocationState::Unclear, AllocationState::Queued,
                               AllocationState::Running};
  std::map<std::pair<std::string_view, AllocationState>, std::uint64_t> counts;
  for (const auto& [id, entry] : table.allocations())
    ++counts[{entry.facts.site, entry.facts.state}];
  text.gauge("hpcbatch_allocations", "Batch jobs of the engine that have not ended, by state.");
  for (const SiteState& site : table.sites()) {
    for (const AllocationState state : kStates)
      text.add(as_number(counts[{site.site.name, state}]),
               {{"site", site.site.name}, {"state", to_string(state)}});
  }
}

void add_sites(MetricsText& text, const SiteTable& table, Time now) {
  const auto family = [&](auto&& value) {
    for (const SiteState& site : table.sites())
      text.add(static_cast<double>(value(site)), {{"site", site.site.name}});
  };
  text.gauge("hpcbatch_site_up", "1 if the batch system of the site answers, else 0.");
  family([](const SiteState& site) { return site.answers() ? 1 : 0; });
  text.gauge("hpcbatch_site_paused_shapes",
             "Shapes for which no batch jobs are submitted for now, after failures.");
  family([&](const SiteState& site) {
    return std::count_if(site.shapes.begin(), site.shapes.end(),
                         [&](const ShapeState& shape) { return !shape.may_be_asked(now); });
  });
  text.histogram("hpcbatch_queue_wait_seconds",
                 "Time that batch jobs waited in the queue before they started, in seconds.");
  for (const SiteState& site : table.sites())
    text.add(site.started.waits, {{"site", site.site.name}});
  const auto bounds = [&](std::uint64_t StartedWaits::Bounds::*which) {
    for (const SiteState& site : table.sites()) {
      for (const auto& [by, counted] : site.started.bounds)
        text.add(as_number(counted.*which), {{"site", site.site.name}, {"by", word_for(by)}});
    }
  };
  text.counter(
      "hpcbatch_queue_bounds_total",
      "Started batch jobs for which a latest start was forecast (nine in ten should hold).");
  bounds(&StartedWaits::Bounds::told);
  text.counter("hpcbatch_queue_bounds_held_total",
               "Started batch jobs that started no later than was forecast.");
  bounds(&StartedWaits::Bounds::held);
}

}  // namespace

std::string metrics_text(Runtime& runtime, const EngineFacts& facts, std::uint64_t requests) {
  MetricsText text;
  text.gauge("hpcbatch_build_info", "1, with the version of the engine.");
  text.add(1, {{"version", HPCBATCH_VERSION}});
  add_process(text, facts);
  text.gauge("hpcbatch_engine_draining", "1 if the engine starts no more tasks, else 0.",
             runtime.engine().is_draining() ? 1 : 0);
  text.counter("hpcbatch_api_requests_total", "Requests that clients have made.",
               as_number(requests));
  text.gauge("hpcbatch_store_up", "1 if the store takes what is to be saved, else 0.",
             runtime.store_trouble() ? 0 : 1);
  text.histogram("hpcbatch_store_commit_seconds",
                 "Time that commits of the store took, in seconds.");
  text.add(runtime.commit_times());
  add_tasks(text, runtime);
  add_pilots(text, runtime);
  add_allocations(text, runtime.engine().sites());
  add_sites(text, runtime.engine().sites(), runtime.now());
  return text.text();
}

}  // namespace hpcbatch
