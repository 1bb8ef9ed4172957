#include "pilot/policy/gpu_facts.hpp"

#include "pilot/policy/image_pull.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hpcbatch::pilot {
namespace {

std::uint64_t number_at(const JsonText& object, const std::string& name) {
  const std::string& text = object.at(name).text;
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

void GpuUse::add(const GpuSeen& seen, std::uint64_t memory, std::uint64_t energy_mj,
                 unsigned sharers) {
  memory_on_[seen.device] = memory;
  std::uint64_t sum = 0;
  for (const auto& [device, bytes] : memory_on_) sum += bytes;
  peak_ = std::max(peak_, sum);
  const unsigned parts = std::max(1U, sharers);
  busy_ += static_cast<double>(seen.busy) / parts;
  energy_mj_ += energy_mj / parts;
  ++looks_;
}

std::optional<unsigned> GpuUse::busy() const {
  if (looks_ == 0) return std::nullopt;
  return static_cast<unsigned>(std::lround(busy_ / looks_));
}

std::optional<std::uint64_t> gpu_memory_share(std::int64_t granted, std::uint64_t device_memory) {
  if (granted <= 0 || granted >= kWhole || device_memory == 0) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(device_memory) *
                                    static_cast<double>(granted) / kWhole);
}

std::vector<GpuFacts> read_gpu_facts(std::string_view text) {
  std::vector<GpuFacts> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto line = read_json(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line || !line->fields.contains("index")) continue;
    const bool has_node = line->fields.contains("numa_node");
    all.push_back({line->at("uuid").text, line->at("name").text, number_at(*line, "memory"),
                   line->at("capability").text, line->at("driver").text, line->at("trouble").text,
                   has_node ? std::optional(static_cast<unsigned>(number_at(*line, "numa_node")))
                            : std::nullopt});
  }
  return all;
}

std::optional<GpuSeen> read_gpu_seen(std::string_view text, const std::vector<GpuFacts>& ours) {
  const auto line = read_json(text);
  if (!line) return std::nullopt;
  const std::string& uuid = line->at("uuid").text;
  const auto found = std::find_if(ours.begin(), ours.end(), [&uuid](const GpuFacts& facts) {
    return !uuid.empty() && facts.uuid == uuid;
  });
  if (found == ours.end()) return std::nullopt;
  GpuSeen seen;
  seen.device = static_cast<unsigned>(found - ours.begin());
  seen.busy = static_cast<unsigned>(std::min<std::uint64_t>(number_at(*line, "busy"), 100));
  seen.memory = number_at(*line, "memory");
  if (line->fields.contains("energy_mj")) seen.energy_mj = number_at(*line, "energy_mj");
  for (const JsonText& process : line->at("processes").list) {
    seen.processes.push_back(
        {static_cast<pid_t>(number_at(process, "pid")), number_at(process, "memory")});
  }
  seen.trouble = line->at("trouble").text;
  seen.was_asked = line->fields.contains("asked");
  return seen;
}

}  // namespace hpcbatch::pilot
