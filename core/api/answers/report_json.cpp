#include "api/answers/report_json.hpp"

#include "api/answers/to_json.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr double kHour = 3600;
constexpr double kGigabyte = 1 << 30;
constexpr double kGigabyteHour = kHour * kGigabyte;
constexpr double kWeek = 7;

/// Three digits that count: more nobody knows.
double rounded(double value) {
  if (value <= 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value / unit) / (1 / unit);
}

void put_spread(json::object& object, const std::string& name, const std::string& unit,
                const records::Sketch& sketch) {
  if (sketch.count() < 0.5) return;
  object[name + "_median" + unit] = rounded(sketch.quantile(0.5));
  object[name + "_95" + unit] = rounded(sketch.quantile(0.95));
}

/// Exactly: less would not be enough.
std::string whole_size(double bytes) {
  constexpr std::uint64_t kMegabytes = 1024;
  const auto megabytes = static_cast<std::uint64_t>(std::ceil(bytes / (1 << 20)));
  return megabytes % kMegabytes == 0 ? fmt::format("{}G", megabytes / kMegabytes)
                                     : fmt::format("{}M", megabytes);
}

/// Two digits that count.
std::string short_number(double value) {
  if (value >= 10) return fmt::format("{:.0f}", value);
  return fmt::format("{:.2g}", value);
}

}  // namespace

json::object to_json(const records::Usage& usage) {
  return {{"runs", std::llround(usage.runs)},
          {"done", std::llround(usage.done)},
          {"failed", std::llround(usage.runs - usage.done - usage.cancelled)},
          {"cancelled", std::llround(usage.cancelled)},
          {"never_ran", std::llround(usage.never_ran)},
          {"tried_again", std::llround(usage.attempts)},
          {"wait_h", usage.wait / kHour},
          {"run_h", usage.run / kHour},
          {"lost_h", usage.lost / kHour},
          {"cpu_h", usage.cpu_used / kHour},
          {"cpu_asked_h", usage.cpu_asked / kHour},
          {"memory_gb_h", usage.memory_used / kGigabyteHour},
          {"memory_asked_gb_h", usage.memory_asked / kGigabyteHour},
          {"time_h", usage.time_used / kHour},
          {"time_asked_h", usage.time_asked / kHour},
          {"gpu_asked_h", usage.gpu_asked / kHour},
          {"gpu_watched_h", usage.gpu_watched / kHour},
          {"gpu_used_h", usage.gpu_used / kHour},
          {"staged_in_h", usage.staged_in / kHour},
          {"staged_out_h", usage.staged_out / kHour},
          {"read_gb", usage.read_bytes / kGigabyte},
          {"written_gb", usage.written_bytes / kGigabyte}};
}

json::object to_json(const records::Profile& profile) {
  json::object object;
  if (profile.run.count() >= 0.5) object["seen"] = std::round(profile.run.count());
  put_spread(object, "run", "_s", profile.run);
  put_spread(object, "memory", "", profile.memory);
  put_spread(object, "cpus", "", profile.cpus);
  put_spread(object, "wait", "_s", profile.wait);
  put_spread(object, "read", "", profile.read_bytes);
  put_spread(object, "written", "", profile.written_bytes);
  put_spread(object, "staged_in", "_s", profile.staged_in);
  put_spread(object, "staged_out", "_s", profile.staged_out);
  put_spread(object, "gpu_busy", "", profile.gpu_busy);
  put_spread(object, "gpu_memory", "", profile.gpu_memory);
  if (profile.on.empty()) return object;
  json::object devices;
  for (const auto& [device, runs] : profile.on) {
    if (runs.count >= 0.5)
      devices[device] =
          json::object{{"seen", std::round(runs.count)}, {"run_s", std::exp(runs.mean)}};
  }
  object["devices"] = std::move(devices);
  return object;
}

json::object to_json(const records::Advice& advice, double days) {
  using What = records::Advice::What;
  const bool is_memory = advice.what == What::Memory;
  const double saves = advice.saves / (is_memory ? kGigabyteHour : kHour) * kWeek / days;
  const auto whole = [](double bytes) { return show_size(static_cast<std::uint64_t>(bytes)); };
  const std::string flag = is_memory                   ? "--mem " + whole_size(advice.enough)
                           : advice.what == What::Gpus ? fmt::format("--gpus {}", advice.enough)
                                                       : fmt::format("--cpus {}", advice.enough);
  const std::string asked = is_memory ? whole(advice.asked) : fmt::format("{}", advice.asked);
  const std::string text = fmt::format("{} is enough for {}, which asks for {}: saves {} {} a week",
                                       flag, advice.kind, asked, short_number(saves),
                                       is_memory                   ? "GB-h"
                                       : advice.what == What::Gpus ? "GPU-h"
                                                                   : "cpu-h");
  return {{"kind", advice.kind},
          {"option", flag},
          {"asked", advice.asked},
          {"enough", advice.enough},
          {"saves_a_week_h", saves},
          {"seen", std::round(advice.runs)},
          {"text", text}};
}

}  // namespace hpcbatch
