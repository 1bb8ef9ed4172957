#include "records/usage.hpp"

#include <algorithm>
#include <chrono>

namespace hpcbatch::records {
namespace {

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// By clocks that may differ.
double between(Time from, Time to) {
  return to <= from ? 0 : in_seconds(to - from);
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  for (const auto sum : kUsageSums) this->*sum += other.*sum;
  return *this;
}

void Profile::add(const Profile& other) {
  run.add(other.run);
  memory.add(other.memory);
  cpus.add(other.cpus);
  wait.add(other.wait);
  read_bytes.add(other.read_bytes);
  written_bytes.add(other.written_bytes);
  gpu_busy.add(other.gpu_busy);
  gpu_memory.add(other.gpu_memory);
  // Whatever runs asks for a cpu.
  if (other.cpus_asked <= 0) return;
  cpus_asked = other.cpus_asked;
  memory_asked = other.memory_asked;
}

void Profile::scale(double factor) {
  for (Sketch* sketch :
       {&run, &memory, &cpus, &wait, &read_bytes, &written_bytes, &gpu_busy, &gpu_memory})
    sketch->scale(factor);
}

void add(Usage& usage, const Run& run, const Needs& needs) {
  if (needs.guess) return add(usage, run, as_asked(needs));
  if (!run.started) {
    if (run.is_last) usage.never_ran += run.tasks;
    return;
  }
  if (!run.is_last) {
    ++usage.attempts;
  } else {
    ++usage.runs;
    if (run.failure == Failure::Ok) ++usage.done;
    if (run.failure == Failure::Cancelled) ++usage.cancelled;
  }
  const double ran = between(*run.started, run.ended);
  if (run.is_first) usage.wait += between(run.submitted, *run.started);
  usage.run += ran;
  if (run.failure != Failure::Ok || !run.is_last) usage.lost += ran;
  usage.cpu_used += std::max(0.0, in_seconds(run.cpu));
  usage.cpu_asked += needs.amounts.get(kCpus).value() * ran;
  const double memory = needs.amounts.get(kMemory).value();
  if (memory > 0 && run.peak_memory != 0) {
    usage.memory_asked += memory * ran;
    usage.memory_used += static_cast<double>(run.peak_memory) * ran;
  }
  if (needs.time) {
    usage.time_used += ran;
    usage.time_asked += in_seconds(*needs.time);
  }
  usage.read_bytes += static_cast<double>(run.read_bytes);
  usage.written_bytes += static_cast<double>(run.written_bytes);
  const double gpus = needs.amounts.gpus().value() * ran;
  usage.gpu_asked += gpus;
  if (run.gpu) {
    usage.gpu_watched += gpus;
    usage.gpu_used += gpus * run.gpu->busy / 100;
  }
}

void add(Profile& profile, const Run& run, const Needs& needs) {
  if (needs.guess) return add(profile, run, as_asked(needs));
  // So short a run says more of the clocks' ticks.
  constexpr double kShortestForCpus = 1;
  if (!run.started) return;
  profile.cpus_asked = needs.amounts.get(kCpus).value();
  profile.memory_asked = needs.amounts.get(kMemory).value();
  if (run.is_first) profile.wait.add(between(run.submitted, *run.started));
  // It was too little: how much is enough nobody has seen.
  if (run.failure == Failure::OomTask)
    profile.memory.add(std::max(profile.memory_asked, static_cast<double>(run.peak_memory)));
  if (run.failure != Failure::Ok || !run.is_last) return;
  const double ran = between(*run.started, run.ended);
  profile.run.add(ran);
  if (run.peak_memory != 0) profile.memory.add(static_cast<double>(run.peak_memory));
  profile.read_bytes.add(static_cast<double>(run.read_bytes));
  profile.written_bytes.add(static_cast<double>(run.written_bytes));
  if (run.gpu) {
    profile.gpu_busy.add(run.gpu->busy);
    profile.gpu_memory.add(static_cast<double>(run.gpu->memory));
  }
  if (ran >= kShortestForCpus) profile.cpus.add(in_seconds(run.cpu) / ran);
}

}  // namespace hpcbatch::records
