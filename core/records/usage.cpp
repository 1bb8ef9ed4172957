#include "records/usage.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hpcbatch::records {
namespace {

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Kinds of GPU beyond so many are not told apart.
constexpr std::size_t kMostDevices = 30;

/// What it asked for in the way in which it ran.
const Resources& asked_by(const Run& run, const Needs& needs) {
  return run.device.empty() ? needs.amounts : way_of(needs, way_on(needs, run.device));
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
  staged_in.add(other.staged_in);
  staged_out.add(other.staged_out);
  for (const auto& [device, runs] : other.on) {
    if (on.size() >= kMostDevices && !on.contains(device)) continue;
    on[device] = broker::put_together(on[device], runs);
  }
  // Whatever runs asks for a cpu.
  if (other.cpus_asked <= 0) return;
  cpus_asked = other.cpus_asked;
  gpus_asked = other.gpus_asked;
  memory_asked = other.memory_asked;
}

void Profile::scale(double factor) {
  for (Sketch* sketch : {&run, &memory, &cpus, &wait, &read_bytes, &written_bytes, &gpu_busy,
                         &gpu_memory, &staged_in, &staged_out})
    sketch->scale(factor);
  for (auto& [device, runs] : on) runs.count *= factor;
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
  const Resources& asked = asked_by(run, needs);
  const double ran = between(*run.started, run.ended);
  if (run.is_first) usage.wait += between(run.submitted, *run.started);
  usage.run += ran;
  if (run.failure != Failure::Ok || !run.is_last) usage.lost += ran;
  usage.cpu_used += std::max(0.0, in_seconds(run.cpu));
  usage.cpu_asked += asked.get(kCpus).value() * ran;
  const double memory = asked.get(kMemory).value();
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
  if (run.is_first) usage.staged_in += in_seconds(run.staged_in);
  usage.staged_out += in_seconds(run.staged_out);
  const double gpus = asked.gpus().value() * ran;
  usage.gpu_asked += gpus;
  if (run.gpu) {
    usage.gpu_watched += gpus;
    // Of a part of one it is seen how busy that kept the whole.
    usage.gpu_used += std::max(1.0, asked.gpus().value()) * ran * run.gpu->busy / 100;
  }
}

void add(Profile& profile, const Run& run, const Needs& needs) {
  if (needs.guess) return add(profile, run, as_asked(needs));
  // So short a run says more of the clocks' ticks.
  constexpr double kShortestForCpus = 1;
  if (!run.started) return;
  const Resources& asked = asked_by(run, needs);
  profile.cpus_asked = asked.get(kCpus).value();
  profile.memory_asked = asked.get(kMemory).value();
  profile.gpus_asked = asked.gpus().value();
  if (run.is_first) profile.wait.add(between(run.submitted, *run.started));
  // It was too little: how much is enough nobody has seen.
  if (run.failure == Failure::OomTask)
    profile.memory.add(std::max(profile.memory_asked, static_cast<double>(run.peak_memory)));
  if (run.failure != Failure::Ok || !run.is_last) return;
  const double ran = between(*run.started, run.ended);
  profile.run.add(ran);
  if (!run.device.empty() && run.ended > *run.started &&
      (profile.on.size() < kMostDevices || profile.on.contains(run.device)))
    broker::learn(profile.on[run.device], run.ended - *run.started);
  if (run.peak_memory != 0) profile.memory.add(static_cast<double>(run.peak_memory));
  profile.read_bytes.add(static_cast<double>(run.read_bytes));
  profile.written_bytes.add(static_cast<double>(run.written_bytes));
  if (run.staged_in != Duration{}) profile.staged_in.add(in_seconds(run.staged_in));
  if (run.staged_out != Duration{}) profile.staged_out.add(in_seconds(run.staged_out));
  if (run.gpu) {
    // Packed with others it is seen to be as busy as all of them.
    if (whole_device(run.device) == run.device) profile.gpu_busy.add(run.gpu->busy);
    profile.gpu_memory.add(static_cast<double>(run.gpu->memory));
  }
  if (ran >= kShortestForCpus) profile.cpus.add(in_seconds(run.cpu) / ran);
}

void add(Spread& spread, const Run& run) {
  if (!run.started) return;
  if (run.is_first) spread.wait.add(between(run.submitted, *run.started));
  if (run.failure == Failure::Ok && run.is_last) spread.run.add(between(*run.started, run.ended));
}

std::int32_t day_of(Time time) {
  return static_cast<std::int32_t>(
      std::chrono::floor<std::chrono::days>(time).time_since_epoch().count());
}

void Tally::add(const Group& group, const Run& run, std::int32_t day) {
  if (!last_usage_ || last_.day != day || last_.kind != group.kind || last_.site != group.site ||
      last_.client != group.client) {
    last_ = {day, group.kind, group.site, group.client};
    last_usage_ = &usage_[last_];
    last_profile_ = &profiles_[group.kind];
  }
  records::add(*last_usage_, run, group.needs);
  records::add(*last_profile_, run, group.needs);
  records::add(spread_, run);
}

double weight_after(Duration age) {
  constexpr std::chrono::days kHalf{30};
  if (age <= Duration{}) return 1;
  return std::exp2(-std::chrono::duration<double>(age) / std::chrono::duration<double>(kHalf));
}

}  // namespace hpcbatch::records
