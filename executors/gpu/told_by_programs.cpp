#include "gpu/told_by_programs.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace hpcbatch::gpu {
namespace {

constexpr std::size_t kColumns = 8;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// The last column may hold commas.
std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  while (columns.size() + 1 < kColumns && line.find(',') != std::string_view::npos) {
    const std::size_t end = line.find(',');
    columns.push_back(trimmed(line.substr(0, end)));
    line.remove_prefix(end + 1);
  }
  columns.push_back(trimmed(line));
  return columns;
}

std::string text_at(const boost::json::object& object, const char* key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

}  // namespace

std::vector<Device> from_nvidia_smi(std::string_view text) {
  std::vector<Device> devices;
  for (const std::string_view line : lines_of(text)) {
    const auto columns = columns_of(line);
    const auto index = number_in<unsigned>(columns.front());
    if (columns.size() != kColumns || !index) continue;
    Device device;
    device.index = *index;
    device.uuid = columns[1];
    device.name = columns[7];
    if (const auto mebibytes = number_in<std::uint64_t>(columns[2]))
      device.memory = *mebibytes * kMiB;
    else
      device.trouble = "nvidia-smi says of its memory: " + std::string(columns[2]);
    device.memory_used = number_in<std::uint64_t>(columns[3]).value_or(0) * kMiB;
    if (number_in<double>(columns[4])) device.capability = columns[4];
    device.driver = columns[5];
    device.pci = columns[6];
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Device> from_rocm_smi(std::string_view text) {
  std::vector<Device> devices;
  boost::json::error_code error;
  const boost::json::value told = boost::json::parse(text, error);
  const boost::json::object* cards = error ? nullptr : told.if_object();
  if (cards == nullptr) return devices;
  for (const auto& [key, value] : *cards) {
    const std::string_view name = key;
    constexpr std::string_view kCard = "card";
    const auto index = name.starts_with(kCard) ? number_in<unsigned>(name.substr(kCard.size()))
                                               : std::optional<unsigned>();
    if (!index || !value.is_object()) continue;
    const boost::json::object& card = value.get_object();
    Device device;
    device.index = *index;
    device.uuid = text_at(card, "Unique ID");
    for (const char* field : {"Card series", "Card Series", "Card model", "Card Model"}) {
      if (device.name.empty()) device.name = text_at(card, field);
    }
    device.memory = number_in<std::uint64_t>(text_at(card, "VRAM Total Memory (B)")).value_or(0);
    device.memory_used =
        number_in<std::uint64_t>(text_at(card, "VRAM Total Used Memory (B)")).value_or(0);
    devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return a.index < b.index; });
  return devices;
}

}  // namespace hpcbatch::gpu
