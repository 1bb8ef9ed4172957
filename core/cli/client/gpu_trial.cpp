#include "cli/client/engine_client.hpp"

#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "hardware/gpu_kind.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kStep = 500ms;
constexpr std::chrono::milliseconds kCancelTime = 5s;

struct Trial {
  std::string shape;
  std::string kind;
  bool is_one_of_several{false};  ///< kinds that the shape has
  std::string task;
};

/// The smallest task that only such a pilot can have.
json::object task_for(const std::string& site, const json::object& shape, std::string_view kind) {
  json::object task{{"command", json::array{"true"}},
                    {"name", "gpu check"},
                    {"site", site},
                    {"gpus", json::object{{kind, 1}}}};
  if (const json::array* tags = array_at(shape, "tags"); tags != nullptr && !tags->empty())
    task["tags"] = *tags;
  return task;
}

json::object row(const std::string& check, bool is_good, const std::string& text) {
  return {{"check", check}, {"ok", is_good}, {"text", text}};
}

std::string in_words(const json::object& device) {
  std::string text = text_at(device, "name");
  if (const double memory = number_at(device, "memory"); memory > 0)
    text += ", " + show_size(static_cast<std::uint64_t>(memory));
  for (const char* key : {"capability", "driver"}) {
    const std::string said = text_at(device, key);
    if (!said.empty()) text += fmt::format(", {} {}", key, said);
  }
  return text;
}

/// Of a kind that is known by its name: what a task that asks for so much memory would find to be
/// wrong.  Drivers keep some of the memory for themselves.
std::string mismatch(const std::string& kind, const json::object& device) {
  constexpr double kLeastPart = 0.85;
  const auto known = gpu_kind(kind);
  if (!known) return "";
  const double memory = number_at(device, "memory");
  if (memory > 0 && memory < kLeastPart * static_cast<double>(known->memory))
    return fmt::format("the shape calls it '{}', which has {}", kind, show_size(known->memory));
  const auto capability = parse_capability(text_at(device, "capability"));
  if (capability && *capability < known->capability)
    return fmt::format("the shape calls it '{}', which has capability {}", kind,
                       show_capability(known->capability));
  return "";
}

class Trials {
 public:
  Trials(EngineClient& client, const Session& session, std::string site)
      : client_(client), session_(session), site_(std::move(site)) {}

  void begin(const json::array& shapes) {
    for (const json::value& each : all_of("allocations"))
      before_.insert(text_at(each.as_object(), "name"));
    json::array tasks;
    for (const json::value& each : shapes) {
      const json::object& shape = each.as_object();
      const json::object* kinds = object_at(shape, "gpus");
      if (kinds == nullptr) continue;
      for (const auto& [kind, count] : *kinds) {
        tasks.push_back(task_for(site_, shape, kind));
        open_.push_back({text_at(shape, "name"), std::string(kind), kinds->size() > 1, ""});
      }
    }
    if (tasks.empty())
      throw CommandError(kExitUsage, "no shape of " + site_ +
                                         " has GPUs; shapes say them as gpus: "
                                         "{a100: 4} in the configuration");
    const Surroundings around = look_around();
    const auto ids = submit_safely(
        client_, session_, submission_of(std::move(tasks), around, client_name(), random_key()));
    for (std::size_t i = 0; i < open_.size() && i < ids.size(); ++i) open_[i].task = ids[i];
  }
  bool are_all_over() const { return open_.empty(); }
  std::string awaited() const { return joined(open_, ", ", &Trial::shape); }
  void look() {
    std::erase_if(open_, [&](const Trial& trial) {
      const json::object task = client_.get("/v1/tasks/" + trial.task);
      const std::string state = text_at(task, "state");
      if (state == "done") {
        add_devices(trial, text_at(task, "allocation"));
        return true;
      }
      if (state == "failed" || state == "cancelled") {
        rows_.push_back(row(trial.shape, false, text_at(task, "message")));
        return true;
      }
      if (!came_to_nothing(trial.shape)) return false;
      rows_.push_back(row(trial.shape, false, why_it_waits(trial)));
      cancel({trial});
      return true;
    });
  }
  void give_up() {
    for (const Trial& trial : open_)
      rows_.push_back(row(trial.shape, false, "no pilot came in time: " + why_it_waits(trial)));
    cancel(open_);
  }
  void cancel_all() const { cancel(open_); }
  json::array take() { return std::move(rows_); }

 private:
  json::array all_of(const char* things) {
    const json::object answer = client_.get(std::string("/v1/") + things);
    const json::array* all = array_at(answer, things);
    return all == nullptr ? json::array{} : *all;
  }
  void add_devices(const Trial& trial, const std::string& allocation) {
    bool any = false;
    for (const json::value& each : all_of("pilots")) {
      const json::object& pilot = each.as_object();
      if (text_at(pilot, "allocation") != allocation) continue;
      const json::array* devices = array_at(pilot, "devices");
      if (devices == nullptr) continue;
      for (const json::value& one : *devices) {
        const json::object& device = one.as_object();
        const std::string what = fmt::format("{}: {}, GPU {}", trial.shape, text_at(pilot, "node"),
                                             text_at(device, "number"));
        any = true;
        if (!told_.insert(what).second) continue;
        std::string trouble = text_at(device, "trouble");
        if (trouble.empty() && !trial.is_one_of_several) trouble = mismatch(trial.kind, device);
        rows_.push_back(
            row(what, trouble.empty(), in_words(device) + (trouble.empty() ? "" : ": " + trouble)));
      }
    }
    if (!any)
      rows_.push_back(
          row(trial.shape, true, "a task ran there; nobody on the node knows its GPUs"));
  }
  /// A pilot that came for the shape since then has ended.
  bool came_to_nothing(const std::string& shape) {
    const json::array all = all_of("allocations");
    return std::any_of(all.begin(), all.end(), [&](const json::value& each) {
      const json::object& allocation = each.as_object();
      return text_at(allocation, "site") == site_ && text_at(allocation, "shape") == shape &&
             text_at(allocation, "state") == "ended" &&
             !before_.contains(text_at(allocation, "name"));
    });
  }
  std::string why_it_waits(const Trial& trial) {
    const json::object why = client_.get("/v1/tasks/" + trial.task + "/explain");
    std::string text = text_at(why, "text");
    if (const json::array* details = array_at(why, "details"); details != nullptr) {
      for (const json::value& detail : *details)
        if (detail.is_string()) text += "; " + std::string(detail.get_string());
    }
    return text;
  }
  void cancel(const std::vector<Trial>& trials) const {
    json::array ids;
    for (const Trial& trial : trials)
      if (!trial.task.empty()) ids.emplace_back(trial.task);
    if (!ids.empty()) cancel_now(session_.places, ids, kCancelTime);
  }

  EngineClient& client_;
  const Session& session_;
  std::string site_;
  std::set<std::string> before_;
  std::set<std::string> told_;
  std::vector<Trial> open_;
  json::array rows_;
};

}  // namespace

json::array try_gpus(EngineClient& client, const Session& session, const json::object& site,
                     std::chrono::milliseconds time, StatusLine& status) {
  const json::array* shapes = array_at(site, "shapes");
  Trials trials(client, session, text_at(site, "name"));
  trials.begin(shapes == nullptr ? json::array{} : *shapes);
  const auto until = Clock::now() + time;
  try {
    for (trials.look(); !trials.are_all_over() && Clock::now() < until; trials.look()) {
      status.show("waiting for pilots of " + trials.awaited() + "; Ctrl-C ends the check");
      session.interrupt.pause(kStep);
    }
  } catch (const InterruptedByUser&) {
    trials.cancel_all();
    throw;
  }
  status.clear();
  trials.give_up();
  return trials.take();
}

}  // namespace hpcbatch
