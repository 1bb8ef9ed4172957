#include "pilot/identity.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace hpcbatch::pilot {
namespace {

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, number);
  return text;
}

/// The batch system knows best when its job ends: a job that was started late by a slow prolog, or
/// that was started again, is not as long as its file says.
std::optional<Time> usable_until(const wire::PilotFile& file, Time now) {
  std::optional<Duration> left;
  if (file.walltime.count() > 0) left = file.walltime;
  if (const char* end = std::getenv("SLURM_JOB_END_TIME")) {
    const auto there =
        std::chrono::system_clock::time_point(std::chrono::seconds(std::strtoll(end, nullptr, 10)));
    const Duration batch = there - std::chrono::system_clock::now();
    if (batch > Duration{} && left) left = std::min(*left, batch);
  }
  if (!left) return std::nullopt;
  return now + *left - file.margin;
}

}  // namespace

Identity identity_of(const wire::PilotFile& file, std::uint32_t rank, Time now) {
  Identity self{file, {file.allocation, rank}, {}, wire::random_number(), {}, {}};
  self.text = self.name.allocation + "." + std::to_string(rank);
  self.work = file.workspace + "/work/" + self.text + "." + hex(self.incarnation);
  self.usable_until = usable_until(file, now);
  return self;
}

}  // namespace hpcbatch::pilot
