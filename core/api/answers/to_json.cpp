#include "api/answers/to_json.hpp"

#include <fmt/format.h>

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

}  // namespace hpcbatch
