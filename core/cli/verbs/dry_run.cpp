#include "cli/verbs/dry_run.hpp"

#include "cli/process/exit.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"

#include <boost/json/array.hpp>

#include <chrono>
#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kLongSubmit{10};

std::string amounts_of(const json::object& needs) {
  std::string all = text_at(needs, "cpus") + " cpus";
  for (const char* key : {"memory", "disk"}) {
    if (needs.contains(key)) all += ", " + size_at(needs, key) + " " + key;
  }
  if (const std::string gpus = gpus_at(needs, "gpus"); !gpus.empty()) all += ", GPUs: " + gpus;
  return all;
}

std::string needs_of(const json::object& trial) {
  const json::object* needs = object_at(trial, "needs");
  if (needs == nullptr) return "";
  std::string all;
  if (const json::array* ways = array_at(*needs, "one_of"); ways != nullptr) {
    for (const json::value& way : *ways)
      all += (all.empty() ? "" : "; or ") + amounts_of(way.as_object());
  } else {
    all = amounts_of(*needs);
  }
  if (needs->contains("time")) all += ", " + duration_at(*needs, "time");
  return all;
}

void print_trial(std::size_t number, const json::object& trial) {
  const std::string count = text_at(trial, "tasks"), item = text_at(trial, "item");
  std::string name = text_at(trial, "name");
  if (name.empty()) name = text_at(trial, "tool");
  std::string text = "task " + std::to_string(number) + (name.empty() ? "" : " (" + name + ")");
  if (count != "1") text += ", " + count + " of them";
  text += ": " + command_at(trial, "command") + "\n";
  if (!item.empty()) text += "  the first of its items: " + item + "\n";
  text += "  needs " + needs_of(trial) + "\n";
  const std::string refusal = text_at(trial, "refusal");
  text += refusal.empty() ? "  fits " + text_at(trial, "fits") + "\n" : "  " + refusal + "\n";
  print(text);
}

}  // namespace

int show_dry_run(EngineClient& client, const json::object& request, bool is_json) {
  const json::object answer = client.post("/v1/tasks/try", request, kLongSubmit);
  const json::array* trials = array_at(answer, "tasks");
  if (trials == nullptr) throw CommandError(kExitNoEngine, "the engine named no tasks");
  bool all_fit = true;
  std::size_t number = 0;
  for (const json::value& one : *trials) {
    if (!one.is_object()) continue;
    all_fit = all_fit && !one.get_object().contains("refusal");
    if (is_json)
      print_json(one);
    else
      print_trial(++number, one.get_object());
  }
  return all_fit ? kExitDone : kExitUsage;
}

}  // namespace hpcbatch
