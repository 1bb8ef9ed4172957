#include "api/answers/to_json.hpp"

#include <fmt/format.h>

namespace hpcbatch {

double seconds(Time time) {
  return static_cast<double>(to_microseconds(time)) / 1e6;
}
double seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::string valid_utf8(const std::string& bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    bool good = length != 0 && i + length <= bytes.size();
    for (std::size_t k = 1; good && k < length; ++k)
      good = (static_cast<unsigned char>(bytes[i + k]) & 0xC0) == 0x80;
    if (good && length == 3) {
      const auto second = static_cast<unsigned char>(bytes[i + 1]);
      good = !(lead == 0xE0 && second < 0xA0) && !(lead == 0xED && second >= 0xA0);
    }
    if (good && length == 4) {
      const auto second = static_cast<unsigned char>(bytes[i + 1]);
      good = !(lead == 0xF0 && second < 0x90) && !(lead == 0xF4 && second >= 0x90);
    }
    if (good) {
      out.append(bytes, i, length);
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  return out;
}

boost::json::object gpus_json(const Resources& resources) {
  boost::json::object gpus;
  for (const auto& [name, amount] : resources.entries()) {
    if (name == kAnyGpu) gpus["any"] = amount.value();
    if (name.starts_with(kGpuPrefix)) gpus[name.substr(kGpuPrefix.size())] = amount.value();
  }
  return gpus;
}

boost::json::object to_json(const Needs& needs) {
  boost::json::object json;
  boost::json::object others;
  for (const auto& [name, amount] : needs.amounts.entries()) {
    if (name == kCpus) {
      json["cpus"] = amount.value();
    } else if (name == kMemory || name == kDisk) {
      json[name] = amount.whole();
    } else if (!name.starts_with(kAnyGpu)) {
      others[name] = amount.value();
    }
  }
  if (auto gpus = gpus_json(needs.amounts); !gpus.empty()) json["gpus"] = std::move(gpus);
  if (!others.empty()) json["resources"] = std::move(others);
  if (needs.time) json["time"] = seconds(*needs.time);
  if (!needs.site.empty()) json["site"] = needs.site;
  if (!needs.not_on.empty())
    json["not_sites"] = boost::json::array(needs.not_on.begin(), needs.not_on.end());
  if (!needs.tags.empty()) json["tags"] = boost::json::array(needs.tags.begin(), needs.tags.end());
  if (needs.nodes != 1) json["nodes"] = needs.nodes;
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

}  // namespace hpcbatch
