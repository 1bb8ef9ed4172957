// What the pilot says on a new link, and what it does with what the engine says.
#include "pilot/pilot.hpp"

#include "pilot/base/log_line.hpp"
#include "pilot/policy/decide.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace hpcbatch::pilot {
namespace {

std::string batch_number() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID"}) {
    if (const char* number = std::getenv(name)) return number;
  }
  return {};
}

using AmountsOnWire = google::protobuf::RepeatedPtrField<wire::Amount>;
using GpusOnWire = google::protobuf::RepeatedPtrField<wire::Gpu>;

void put_capacity(AmountsOnWire& into, const Amounts& amounts) {
  into.Clear();
  for (const auto& [name, amount] : amounts) {
    wire::Amount* thing = into.Add();
    thing->set_name(name);
    thing->set_value(amount);
  }
}

void put_gpus(GpusOnWire& into, const std::vector<GpuFacts>& gpus) {
  into.Clear();
  for (const GpuFacts& facts : gpus) {
    wire::Gpu* gpu = into.Add();
    gpu->set_number(static_cast<std::uint32_t>(into.size()) - 1);
    gpu->set_uuid(facts.uuid);
    gpu->set_name(facts.name);
    gpu->set_memory(facts.memory);
    gpu->set_capability(facts.capability);
    gpu->set_driver(facts.driver);
    gpu->set_trouble(facts.trouble);
  }
}

}  // namespace

void Pilot::link_up(const std::string& address) {
  wire::ToEngine& out = link_.outgoing();
  wire::Register& registration = *out.mutable_registration();
  registration.set_version(HPCBATCH_VERSION);
  registration.set_node(node_.name);
  registration.set_process(static_cast<std::uint32_t>(::getpid()));
  put_capacity(*registration.mutable_capacity(), decide_.capacity());
  put_gpus(*registration.mutable_gpus(), node_.gpus);
  registration.set_time_left_ms(-1);
  if (self_.usable_until) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(*self_.usable_until - now_).count();
    registration.set_time_left_ms(std::max<std::int64_t>(0, left));
  }
  say_held(decide_, registration);
  registration.set_batch_number(batch_number());
  registration.set_link(address);
  for (const std::string& refusal : node_.refusals) registration.add_refusals(refusal);
  registration.set_incarnation(self_.incarnation);
  if (!leaving_.empty()) {
    out.set_leaving(true);
    out.set_leaving_reason(leaving_);
  }
  starts_.untold.clear();  // it is in what we hold
  said_ = {};
  link_.added(true, now_);
  results_.send_all();
  runner_.want_input_again();
}

void Pilot::gather(wire::ToEngine& outgoing) {
  for (const AttemptId& id : starts_.untold) {
    if (decide_.state_of(id) == Decide::State::Running) to_wire(id, outgoing.add_started());
  }
  starts_.untold.clear();
}

/// The engine sends their next tasks to a pilot that has their service.
void Pilot::say_services() {
  const std::uint64_t changes = runner_.services().changes();
  if (changes == said_.services || !link_.is_up()) return;
  said_.services = changes;
  wire::Warm& warm = *link_.outgoing().mutable_warm();
  warm.Clear();
  for (const std::string& name : runner_.services().names()) warm.add_services(name);
  const auto starting = runner_.services().slow_starters();
  for (const std::string& name : starting) warm.add_starting(name);
  history_.services_starting(starting.size());
  link_.added(true, now_);
}

/// Results are sent when what they printed is written: so many wait for the workspace.
void Pilot::say_workspace() {
  const std::string& trouble = workspace_.trouble();
  if (trouble.empty() && said_.trouble.empty()) return;
  // Who hears that all is well may send tasks at once.
  if (trouble.empty() && workspace_.is_stuck) return;
  std::vector<AttemptId> ended = publisher_.stuck();
  if (!workspace_.pack.trouble().empty()) {
    const auto& unwritten = results_.waiting();
    ended.insert(ended.end(), unwritten.begin(), unwritten.end());
  }
  if (!link_.is_up() || (trouble == said_.trouble && ended.size() == said_.waiting)) return;
  said_.trouble = trouble;
  said_.waiting = ended.size();
  wire::Workspace& said = *link_.outgoing().mutable_workspace();
  said.Clear();
  said.set_trouble(trouble);
  for (const AttemptId& id : ended) to_wire(id, said.add_ended());
  link_.added(true, now_);
}

/// One that breaks is set aside, with what runs on it.
void Pilot::gpu_seen(const GpuSeen& seen) {
  runner_.gpu_seen(seen, now_);
  GpuFacts& facts = node_.gpus.at(seen.device);
  if (seen.trouble.empty() || !facts.trouble.empty()) return;
  facts.trouble = seen.trouble;
  log_line("GPU " + std::to_string(seen.device) + " is set aside: " + seen.trouble);
  decide_.gpu_broke(seen.device,
                    "its GPU " + std::to_string(seen.device) +
                        (facts.uuid.empty() ? "" : " (" + facts.uuid + ")") + " on " + node_.name +
                        ": " + seen.trouble,
                    now_);
  say_gpus();
}

void Pilot::say_gpus() {
  if (!link_.is_up()) return;
  wire::Gpus& said = *link_.outgoing().mutable_gpus();
  put_gpus(*said.mutable_gpus(), node_.gpus);
  put_capacity(*said.mutable_capacity(), decide_.capacity());
  link_.added(true, now_);
}

void Pilot::on_message(wire::ToPilot& message) {
  leases_.keep_environments(message);
  std::vector<bool> is_new;
  for (const wire::Start& start : message.start()) {
    for (std::uint32_t i = 0; i < leased_by(start); ++i)
      is_new.push_back(!decide_.state_of(neighbour(from_wire(start.attempt()), i)));
  }
  apply_message(decide_, message, now_);
  leases_.keep(message, is_new);
  if (message.welcome()) history_.linked();
  if (message.has_stay_ms()) history_.stays(message.stay_ms());
  for (const wire::Follow& asked : message.follow()) follow(asked);
  for (const wire::Input& input : message.input()) {
    runner_.give_input(from_wire(input.attempt()), input.data(), input.offset(), input.end());
  }
  if (message.fenced()) {
    log_line("the engine has given this pilot up: ending everything");
    history_.fenced();
  }
}

void Pilot::follow(const wire::Follow& asked) {
  const AttemptId id = from_wire(asked.attempt());
  if (asked.stop()) {
    followers_.stop(id);
    return;
  }
  if (leases_.follow_from_start(id)) return;
  followers_.follow(id, asked.out_offset(), asked.err_offset());
  // Of what has ended the rest is sent; of what is not here nothing, and the end is said.
  if (runner_.capture(id, 1) == nullptr) {
    const wire::Result* result = results_.find(id);
    followers_.ended(id, result ? result->log() : wire::LogPlace());
  }
}

}  // namespace hpcbatch::pilot
