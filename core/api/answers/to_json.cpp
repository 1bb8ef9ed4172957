#include "api/answers/to_json.hpp"

#include "documents/json_numbers.hpp"
#include "documents/texts.hpp"
#include "failure/failure.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include <sodium.h>

namespace hpcbatch {

double seconds(Time time) {
  return static_cast<double>(to_microseconds(time)) / 1e6;
}
double seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

boost::json::object gpus_json(const Resources& resources) {
  boost::json::object gpus;
  for (const auto& [name, amount] : resources.entries()) {
    if (name == kAnyGpu) gpus["any"] = amount.value();
    if (name.starts_with(kGpuPrefix)) gpus[name.substr(kGpuPrefix.size())] = amount.value();
  }
  return gpus;
}

namespace {

boost::json::object amounts_json(const Resources& amounts) {
  boost::json::object json;
  boost::json::object others;
  for (const auto& [name, amount] : amounts.entries()) {
    if (name == kCpus) {
      json["cpus"] = amount.value();
    } else if (name == kMemory || name == kDisk) {
      json[name] = amount.whole();
    } else if (!name.starts_with(kAnyGpu)) {
      others[name] = amount.value();
    }
  }
  if (auto gpus = gpus_json(amounts); !gpus.empty()) json["gpus"] = std::move(gpus);
  if (!others.empty()) json["resources"] = std::move(others);
  return json;
}

}  // namespace

boost::json::object to_json(const Needs& needs) {
  boost::json::object json = amounts_json(needs.amounts);
  if (!needs.device->instead.empty()) {
    boost::json::array ways;
    for (std::size_t way = 0; way < count_of_ways(needs); ++way)
      ways.push_back(amounts_json(way_of(needs, way)));
    json["one_of"] = std::move(ways);
  }
  if (needs.time) json["time"] = seconds(*needs.time);
  if (needs.time_request) json["time_request"] = seconds(*needs.time_request);
  if (!needs.site.empty()) json["site"] = needs.site;
  if (!needs.not_on.empty())
    json["not_sites"] = boost::json::array(needs.not_on.begin(), needs.not_on.end());
  if (!needs.tags.empty()) json["tags"] = boost::json::array(needs.tags.begin(), needs.tags.end());
  if (needs.nodes != 1) json["nodes"] = needs.nodes;
  if (needs.guess) {
    boost::json::object guess{{"runs", needs.guess->runs}};
    if (needs.guess->memory) guess["memory"] = needs.guess->memory_asked.whole();
    if (needs.guess->time) guess["time"] = true;
    if (needs.guess->gpus) guess["gpus"] = needs.guess->gpus_asked.value();
    json["guess"] = std::move(guess);
  }
  return json;
}

std::string id_of(ArrayId array, IndexRange range) {
  if (range.first == range.last) return to_string(TaskId{array, range.first});
  return fmt::format("{}.{}-{}", array.value, range.first, range.last);
}

boost::json::array to_json(const std::vector<Dependency>& after) {
  boost::json::array ids;
  for (const Dependency& one : after) {
    ids.push_back(boost::json::string(one.index ? to_string(TaskId{one.array, *one.index})
                                                : std::to_string(one.array.value)));
  }
  return ids;
}

void put_course(boost::json::object& object, const std::vector<Dependency>& after,
                const Course& course) {
  static constexpr std::array kHow{"after", "after_any", "after_each", "after_start",
                                   "after_failed"};
  if (!after.empty()) object["after"] = to_json(after);
  const bool is_plain = std::all_of(after.begin(), after.end(), [](const Dependency& one) {
    return one.kind == Dependency::Kind::Success;
  });
  boost::json::array how;
  for (const Dependency& one : after) how.emplace_back(kHow.at(static_cast<std::size_t>(one.kind)));
  if (!is_plain) object["after_how"] = std::move(how);
  if (course.any_of_after) object["after_one"] = true;
  if (!course.singleton.empty()) object["singleton"] = true;
  if (course.begin) object["begin"] = seconds(*course.begin);
  if (course.deadline) object["deadline"] = seconds(*course.deadline);
  if (course.no_requeue) object["requeue"] = false;
}

std::string base64(std::string_view bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the zero behind it
  return text;
}

void put_item(boost::json::object& object, const Item& item) {
  object["item"] = item.text();
  if (find_invalid_utf8(item.text())) object["item_base64"] = base64(item.text());
}

void put_item_and_columns(boost::json::object& object, const Item& item) {
  put_item(object, item);
  if (item.columns().empty()) return;
  boost::json::object columns, as_bytes;
  for (const auto& [name, value] : item.columns()) {
    columns[name] = value;
    if (find_invalid_utf8(value)) as_bytes[name] = base64(value);
  }
  object["columns"] = std::move(columns);
  if (!as_bytes.empty()) object["columns_base64"] = std::move(as_bytes);
}

void put_metrics(boost::json::object& object, const std::string& text) {
  if (text.empty()) return;
  boost::system::error_code error;
  boost::json::value value = parse_json(text, error);
  if (!error && holds_infinity(value)) error = boost::json::error::exponent_overflow;
  if (!error && value.is_object())
    object["metrics"] = std::move(value);
  else
    object["metrics_error"] = "what it wrote to HPCBATCH_METRICS is no JSON object" +
                              (error ? ": " + error.message() : std::string());
}

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

void put_outcome(json::object& object, const Outcome& outcome) {
  object["failure"] = std::string(to_string(outcome.failure));
  const bool ran = outcome.started.has_value();
  if (const auto code = shell_exit_code(outcome)) object["exit_code"] = *code;
  if (outcome.signal != 0) object["signal"] = outcome.signal;
  if (!outcome.message.empty()) object["message"] = outcome.message;
  if (ran) {
    object["started_at"] = seconds(*outcome.started);
    object["run_s"] = seconds(outcome.ended - *outcome.started);
  }
  object["ended_at"] = seconds(outcome.ended);
}

json::object line_of(const std::string& id, TaskState state, std::uint64_t tasks) {
  return {{"id", id}, {"state", std::string(to_string(state))}, {"tasks", tasks}};
}

namespace {

/// Where one task ended, and what it took.
void put_place(json::object& line, const store::ResultRow& result) {
  if (result.outcome.peak_memory != 0) line["peak_memory"] = result.outcome.peak_memory;
  if (result.outcome.cpu_time != Duration{}) line["cpu_s"] = seconds(result.outcome.cpu_time);
  if (!result.node.empty()) line["node"] = result.node;
  if (!result.pilot.empty()) line["pilot"] = result.pilot;
  if (result.attempt != 0) line["attempt"] = result.attempt;
}

}  // namespace

void add_ended(store::Store& store, ListAsked asked, Lines& lines) {
  // Each has its own node and times.
  asked.apart = asked.apart || asked.full;
  std::uint32_t& left = asked.filter.limit;
  for (const store::ResultRow& row : store.history().results(asked.filter)) {
    if (left == 0) break;
    const std::size_t before = lines.size();
    const bool is_shared = row.indices.first != row.indices.last;
    std::vector<store::ResultRow> each;
    if (asked.full && is_shared) each = store.history().apart(row);
    add_range(lines, asked, row.array, row.indices, [&](IndexRange part) {
      const bool is_one = part.first == part.last;
      const bool is_own = is_one && each.size() > 1;
      const store::ResultRow& result = is_own ? each.at(part.first - row.indices.first) : row;
      json::object line = line_of(id_of(row.array, part), state_after(result.outcome.failure),
                                  std::uint64_t{part.last} - part.first + 1);
      put_outcome(line, result.outcome);
      // Of several it would be from the first start to the last end.
      if (!is_own && is_shared) line.erase("run_s");
      if (asked.full && is_one) put_place(line, result);
      return line;
    });
    left -= static_cast<std::uint32_t>(lines.size() - before);
  }
}

}  // namespace hpcbatch
