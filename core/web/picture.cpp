#include "web/picture.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace hpcbatch::web {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostSeconds = 3600, kMostMinutes = 1440, kMostRuns = 20'000;
constexpr double kMinute = 60;
constexpr std::array<std::string_view, 6> kStates{"waiting", "held",   "running",
                                                  "done",    "failed", "cancelled"};
/// Of a run, in this order, as `views.js` reads them.
constexpr std::array<std::string_view, 9> kOfRun{
    "id", "array", "pilot", "started_at", "ended_at", "state", "name", "tool", "attempt"};

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (!value) return {};
  return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

template <class Points>
json::array newer_of(const Points& points, std::uint64_t version) {
  auto first = points.end();
  while (first != points.begin() && std::prev(first)->version > version) --first;
  json::array newer;
  for (; first != points.end(); ++first) newer.push_back(first->values);
  return newer;
}

}  // namespace

void Picture::put(const std::string& section, const json::array& entries,
                  std::string_view name_of) {
  Section& there = sections_[section];
  const std::uint64_t next = version_ + 1;
  bool has_changed = false;
  std::set<std::string, std::less<>> named;
  for (const json::value& value : entries) {
    const json::object& object = value.as_object();
    const std::string name = text_at(object, name_of);
    named.insert(name);
    std::string text = json::serialize(object);
    Entry& entry = there[name];
    if (entry.version != 0 && !entry.gone && entry.text == text) continue;
    entry = {std::move(text), object, next, false};
    has_changed = true;
  }
  for (auto& [name, entry] : there) {
    if (entry.gone || named.contains(name)) continue;
    entry = {"", {}, next, true};
    has_changed = true;
  }
  // What went long ago need be told to nobody: pages ask every second.
  std::erase_if(there, [&](const auto& one) {
    return one.second.gone && one.second.version + kMostSeconds < next;
  });
  if (has_changed) version_ = next;
}

void Picture::put(const std::string& section, json::object object) {
  std::string text = json::serialize(object);
  Entry& entry = objects_[section];
  if (entry.version != 0 && entry.text == text) return;
  entry = {std::move(text), std::move(object), ++version_, false};
}

void Picture::add_counts(double time, const json::object& tasks) {
  json::array values{time};
  for (const std::string_view state : kStates) {
    const json::value* count = tasks.if_contains(state);
    values.push_back(count ? *count : json::value(0));
  }
  ++version_;
  if (minutes_.empty() || time - minutes_.back().values[0].to_number<double>() >= kMinute) {
    minutes_.push_back({values, version_});
    if (minutes_.size() > kMostMinutes) minutes_.pop_front();
  }
  seconds_.push_back({std::move(values), version_});
  if (seconds_.size() > kMostSeconds) seconds_.pop_front();
}

void Picture::add_runs(const json::array& tasks) {
  bool has_changed = false;
  for (const json::value& value : tasks) {
    const json::object& task = value.as_object();
    if (!task.contains("ended_at") || !task.contains("started_at") || !task.contains("pilot"))
      continue;
    if (!known_runs_.insert(text_at(task, "id") + "@" + text_at(task, "attempt")).second) continue;
    json::array values;
    for (const std::string_view key : kOfRun) {
      const json::value* part = task.if_contains(key);
      values.push_back(part ? *part : json::value());
    }
    runs_.push_back({std::move(values), version_ + 1});
    has_changed = true;
  }
  if (has_changed) ++version_;
  while (runs_.size() > kMostRuns) {
    const json::array& oldest = runs_.front().values;
    known_runs_.erase(std::string(oldest[0].as_string()) + "@" + json::serialize(oldest[8]));
    runs_.pop_front();
  }
}

json::object Picture::since(std::uint64_t version) const {
  json::object changed{{"version", version_}};
  json::object sections;
  for (const auto& [name, section] : sections_) {
    json::object entries;
    for (const auto& [key, entry] : section) {
      if (entry.version <= version || (version == 0 && entry.gone)) continue;
      entries[key] = entry.gone ? json::value() : json::value(entry.value);
    }
    if (!entries.empty() || version == 0) sections[name] = std::move(entries);
  }
  if (!sections.empty()) changed["sections"] = std::move(sections);
  for (const auto& [name, entry] : objects_)
    if (entry.version > version) changed[name] = entry.value;
  if (version == 0) changed["minutes"] = newer_of(minutes_, 0);
  if (json::array counts = newer_of(seconds_, version); !counts.empty())
    changed["counts"] = std::move(counts);
  if (json::array runs = newer_of(runs_, version); !runs.empty()) changed["runs"] = std::move(runs);
  return changed;
}

}  // namespace hpcbatch::web
