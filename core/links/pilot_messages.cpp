#include "links/pilot_messages.hpp"

#include "sites/log_reader.hpp"
#include "wire/outbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

AttemptEnd end_from_wire(const wire::Result& result, Time now) {
  AttemptEnd end{from_wire(result.attempt()), {}, result.outputs_staged(), result.stage_out()};
  end.of_room = result.of_room();
  end.published.assign(result.published().begin(), result.published().end());
  if (result.missing_file().size() <= limits::kLongName) end.missing_file = result.missing_file();
  Outcome& outcome = end.outcome;
  outcome.failure = failure_of(result);
  outcome.exit_code = result.exit_code();
  outcome.signal = result.signal();
  outcome.message = result.message();
  if (result.started_us() != 0) outcome.started = from_microseconds(result.started_us());
  outcome.ended = result.ended_us() != 0 ? from_microseconds(result.ended_us()) : now;
  outcome.peak_memory = result.peak_memory();
  outcome.cpu_time = Duration{static_cast<std::int64_t>(result.cpu_us())};
  outcome.read_bytes = result.read_bytes();
  outcome.written_bytes = result.written_bytes();
  if (result.has_gpu_busy())
    outcome.gpu = GpuUse{result.gpu_busy(), result.gpu_memory(), result.gpu_energy_mj()};
  std::vector<IndexRange> cpus;
  cpus.reserve(static_cast<std::size_t>(result.cpus_size()));
  for (const std::uint32_t cpu : result.cpus()) cpus.push_back({cpu, cpu});
  if (!cpus.empty()) outcome.cpus = to_string(IndexSet::of(std::move(cpus)));
  outcome.metrics = result.metrics();
  const wire::LogPlace& log = result.log();
  outcome.log = {log.file(),      log.last_out(),  log.last_err(), log.out_bytes(),
                 log.err_bytes(), log.truncated(), log.lost()};
  outcome = sensible(std::move(outcome), now);
  return end;
}

bool goes_on(const LeaseRun& run, const SendLeases::Lease& lease) {
  return !lease.nodes && !run.first.nodes &&
         lease.attempt == neighbour(run.first.attempt, run.count) &&
         lease.granted == run.first.granted && lease.memory == run.first.memory &&
         lease.memory_is_limit == run.first.memory_is_limit &&
         lease.time_limit == run.first.time_limit;
}

template <class Amounts>
Resources resources_of(const Amounts& amounts) {
  Resources resources;
  for (const wire::Amount& amount : amounts) resources.set(amount.name(), Amount{amount.value()});
  return resources;
}

std::optional<Duration> time_left_of(const wire::Register& said) {
  if (said.time_left_ms() < 0) return std::nullopt;
  return std::chrono::milliseconds(said.time_left_ms());
}

template <class Gpus>
std::vector<Gpu> gpus_of(const Gpus& said) {
  std::vector<Gpu> gpus;
  for (const wire::Gpu& gpu : said) {
    gpus.push_back({gpu.number(), gpu.uuid(), gpu.name(), gpu.memory(), gpu.capability(),
                    gpu.driver(), gpu.trouble()});
  }
  return gpus;
}

}  // namespace

PilotClaims claims_of(const PilotId& pilot, const wire::ToEngine& message) {
  PilotClaims claims{.pilot = pilot};
  const auto speaks_of = [&](const wire::Attempt& attempt, std::string_view said) {
    claims.attempts.push_back({from_wire(attempt), said});
  };
  claims.attempts.reserve(static_cast<std::size_t>(message.started_size()) +
                          static_cast<std::size_t>(message.results_size()));
  const wire::Register& registration = message.registration();
  for (const wire::Held& held : registration.held()) speaks_of(held.attempt(), "held");
  for (const wire::Attempt& attempt : message.started()) speaks_of(attempt, "started");
  for (const wire::Result& result : message.results()) speaks_of(result.attempt(), "results");
  for (const wire::Attempt& attempt : message.returned()) speaks_of(attempt, "returned");
  for (const wire::Chunk& chunk : message.chunks()) speaks_of(chunk.attempt(), "chunks");
  for (const wire::InputWanted& wanted : message.input_wanted())
    speaks_of(wanted.attempt(), "input_wanted");
  for (const wire::Attempt& attempt : message.workspace().ended()) speaks_of(attempt, "workspace");
  if (message.has_gpus()) claims.capacity = resources_of(message.gpus().capacity());
  if (message.has_registration()) {
    claims.capacity = resources_of(registration.capacity());
    claims.node = PilotClaims::Node{time_left_of(registration)};
  }
  return claims;
}

PilotRegistered registration_of(const PilotId& pilot, const wire::ToEngine& message) {
  const wire::Register& said = message.registration();
  PilotRegistered event{.pilot = pilot, .incarnation = said.incarnation()};
  event.confirmed_by = said.confirmed_by();
  event.node = said.node();
  event.capacity = resources_of(said.capacity());
  event.gpus = gpus_of(said.gpus());
  event.time_left = time_left_of(said);
  for (const wire::Held& held : said.held()) {
    event.held.push_back(
        {from_wire(held.attempt()), static_cast<HeldAttempt::State>(held.state())});
  }
  event.batch_number = said.batch_number();
  event.refusals.assign(said.refusals().begin(), said.refusals().end());
  event.leaving = message.leaving();
  return event;
}

std::vector<Event> events_of(const PilotId& pilot, const wire::ToEngine& message, Time now) {
  std::vector<Event> events;
  // What it gives back with this is not to be leased to it again.
  if (message.has_workspace()) {
    WorkspaceSeen seen{pilot, message.workspace().trouble(), {}};
    for (const wire::Attempt& attempt : message.workspace().ended())
      seen.ended.push_back(from_wire(attempt));
    events.emplace_back(std::move(seen));
  }
  if (message.started_size() != 0) {
    AttemptsStarted started{pilot, {}};
    for (const wire::Attempt& attempt : message.started())
      started.attempts.push_back(from_wire(attempt));
    events.emplace_back(std::move(started));
  }
  if (message.results_size() != 0) {
    AttemptsEnded ended{pilot, {}};
    ended.ends.reserve(static_cast<std::size_t>(message.results_size()));
    for (const wire::Result& result : message.results())
      ended.ends.push_back(end_from_wire(result, now));
    events.emplace_back(std::move(ended));
  }
  // Before what is given back because of it, which would go there again.
  if (message.has_gpus()) {
    events.emplace_back(
        GpusSeen{pilot, resources_of(message.gpus().capacity()), gpus_of(message.gpus().gpus())});
  }
  if (message.has_warm()) {
    const auto& services = message.warm().services();
    const auto& starting = message.warm().starting();
    events.emplace_back(ServicesWarm{
        pilot, {services.begin(), services.end()}, {starting.begin(), starting.end()}});
  }
  if (message.returned_size() != 0) {
    AttemptsReturned returned{pilot, {}};
    for (const wire::Attempt& attempt : message.returned())
      returned.attempts.push_back(from_wire(attempt));
    events.emplace_back(std::move(returned));
  }
  if (message.leaving()) events.emplace_back(PilotLeaving{pilot, message.leaving_reason()});
  return events;
}

std::vector<AttemptEnd> results_of_outbox(const AllocationId& allocation,
                                          const std::vector<std::string>& results, Time now) {
  std::vector<AttemptEnd> ends;
  for (const std::string& bytes : results) {
    wire::Result result;
    if (result.ParseFromString(bytes) && !beyond_limits(allocation, result))
      ends.push_back(end_from_wire(result, now));
  }
  return ends;
}

std::vector<LeaseRun> runs_of(const std::vector<SendLeases::Lease>& leases) {
  std::vector<LeaseRun> runs;
  for (const SendLeases::Lease& lease : leases) {
    if (!runs.empty() && goes_on(runs.back(), lease)) {
      ++runs.back().count;
    } else {
      runs.push_back({lease, 1});
    }
  }
  return runs;
}

SendLeases::Lease lease_in(const LeaseRun& run, std::uint32_t place) {
  SendLeases::Lease lease = run.first;
  lease.attempt = neighbour(lease.attempt, place);
  return lease;
}

wire::Start start_of(const LeaseRun& run, wire::Start start) {
  const SendLeases::Lease& lease = run.first;
  if (run.count > 1) start.set_count(run.count);
  to_wire(lease.attempt, start.mutable_attempt());
  for (const auto& [name, amount] : lease.granted.entries()) {
    wire::Amount* granted = start.add_granted();
    granted->set_name(name);
    granted->set_value(amount.ticks);
  }
  start.set_memory_is_limit(lease.memory_is_limit);
  if (lease.memory != Amount{}) start.set_memory(lease.memory.ticks);
  if (lease.time_limit) {
    start.set_time_limit_ms(static_cast<std::uint64_t>(
        std::chrono::ceil<std::chrono::milliseconds>(*lease.time_limit).count()));
  }
  start.set_shown_index(lease.attempt.task.index);
  if (lease.nodes) {
    for (const NodesOfTask::Node& node : lease.nodes->nodes) {
      wire::NodeOfTask* out = start.add_nodes();
      out->set_rank(node.rank);
      out->set_name(node.name);
    }
    start.set_holds_room(lease.holds_room);
  }
  return start;
}

void say(const WelcomePilot&, wire::ToPilot& message) {
  message.set_welcome(true);
}
void say(const ConfirmPilot& action, wire::ToPilot& message) {
  message.set_confirmed_by(action.engine_start);
}
void say(const RecallLeases& action, wire::ToPilot& message) {
  message.set_recall(action.count);
}
void say(const KillAttempt& action, wire::ToPilot& message) {
  wire::Kill* kill = message.add_kill();
  to_wire(action.attempt, kill->mutable_attempt());
  kill->set_failure(std::string(to_string(action.failure)));
  kill->set_silent(action.silent);
}
void say(const AcknowledgeResults& action, wire::ToPilot& message) {
  for (const AttemptId& attempt : action.attempts) to_wire(attempt, message.add_acknowledged());
}
void say(const PermitPublish& action, wire::ToPilot& message) {
  to_wire(action.attempt, message.add_publish());
}
void say(const EndPilot&, wire::ToPilot& message) {
  message.set_end(true);
}
void say(const StayPilot& action, wire::ToPilot& message) {
  message.set_stay_ms(static_cast<std::uint64_t>(std::max<std::int64_t>(
      0, std::chrono::ceil<std::chrono::milliseconds>(action.time).count())));
}
void say(const FencePilot&, wire::ToPilot& message) {
  message.set_fenced(true);
}

namespace {

using namespace std::chrono_literals;

constexpr Duration kClockAhead = 5min;
constexpr Duration kLongAgo = 400 * 24h;  // results may lie in an outbox while the engine is away
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 50;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;
constexpr std::uint64_t kMostEnergy = std::uint64_t{1} << 50;
constexpr Duration kMostCpuTime = kLongAgo * 1024;
constexpr int kMostExitCode = 255;
constexpr int kMostSignal = 127;

/// Collects the first thing that is wrong.
class Limits {
 public:
  /// `logs`: how the names of its own logs begin.
  explicit Limits(std::string logs) : logs_(std::move(logs)) {}

  void count(std::string_view what, int there, int most) {
    if (there > most) say(fmt::format("it named {} {}; {} are the most", there, what, most));
  }
  void text(std::string_view what, const std::string& said, std::size_t most) {
    if (said.size() > most)
      say(fmt::format("its {} has {} bytes; {} are the most", what, said.size(), most));
  }
  template <class Texts>
  void texts(std::string_view what, const Texts& said, int most, std::size_t longest) {
    count(what, said.size(), most);
    for (const std::string& one : said) text(what, one, longest);
  }
  void within(std::string_view what, std::uint64_t number, std::uint64_t least,
              std::uint64_t most) {
    if (number < least || number > most)
      say(fmt::format("its {} is {}; from {} to {} is possible", what, number, least, most));
  }
  void attempt(const wire::Attempt& attempt) {
    within("number of an attempt", attempt.number(), 1, UINT32_MAX);
  }
  template <class Attempts>
  void attempts(const Attempts& all) {
    for (const wire::Attempt& one : all) attempt(one);
  }
  template <class Amounts>
  void capacity(const Amounts& amounts) {
    count("kinds of resources", amounts.size(), limits::kResources);
    for (const wire::Amount& amount : amounts) {
      text("name of a resource", amount.name(), limits::kName);
      if (amount.value() < 0)
        say(fmt::format("it says that it has less than nothing of '{}'", amount.name()));
    }
  }
  template <class Gpus>
  void gpus(const Gpus& all) {
    count("GPUs", all.size(), limits::kGpus);
    for (const wire::Gpu& gpu : all) {
      for (const std::string* name : {&gpu.uuid(), &gpu.name(), &gpu.capability(), &gpu.driver()})
        text("fact of a GPU", *name, limits::kName);
      text("trouble of a GPU", gpu.trouble(), limits::kText);
    }
  }
  void registration(const wire::Register& said);
  void result(const wire::Result& said);
  void output(const wire::Chunk& said) {
    attempt(said.attempt());
    // 0 where nothing but the end is said.
    within("stream of output", said.stream(), 0, 2);
    within("place in a stream", said.offset(), 0, limits::kPlace);
  }
  void input(const wire::InputWanted& said) {
    attempt(said.attempt());
    within("place in a stream", said.offset(), 0, limits::kPlace);
  }

  std::optional<std::string> take() { return std::move(wrong_); }

 private:
  void say(const std::string& text) {
    if (!wrong_) wrong_ = text;
  }
  void log(const wire::LogPlace& log);

  std::string logs_;
  std::optional<std::string> wrong_;
};

void Limits::registration(const wire::Register& said) {
  for (const std::string* name : {&said.version(), &said.node(), &said.batch_number()})
    text("name", *name, limits::kName);
  text("way to the engine", said.link(), limits::kLongName);
  capacity(said.capacity());
  gpus(said.gpus());
  texts("refusals", said.refusals(), limits::kRefusals, limits::kText);
  if (said.time_left_ms() > limits::kTimeLeftMs) say("it says that it has over a century left");
  for (const wire::Held& held : said.held()) {
    attempt(held.attempt());
    within("state of an attempt", held.state(), 1, 4);
  }
}

void Limits::log(const wire::LogPlace& log) {
  const std::string& file = log.file();
  if (!file.empty() &&
      (!file.starts_with(logs_) || file.find('/', logs_.size()) != std::string::npos))
    say(fmt::format("it said that output lies in '{}', which is no log of its own",
                    file.substr(0, limits::kName)));
  text("log", file, limits::kLongName);
  for (const std::uint64_t place :
       {log.last_out(), log.last_err(), log.out_bytes(), log.err_bytes()})
    within("place in a log", place, 0, limits::kPlace);
}

void Limits::result(const wire::Result& said) {
  attempt(said.attempt());
  text("failure", said.failure(), limits::kName);
  count("cpus", said.cpus_size(), limits::kCpus);
  for (const std::uint32_t cpu : said.cpus()) within("cpu", cpu, 0, limits::kCpus);
  count("outputs", said.published_size(), limits::kPublished);
  for (const std::uint32_t place : said.published())
    within("output", place, 0, std::uint64_t{limits::kPublished});
  log(said.log());
}

/// By its node's clock where that can be true; else by ours, as long as it says that it took.
void bring_to_time(Outcome& outcome, Time now) {
  std::optional<Duration> length;
  if (outcome.started) {
    // Both may be anything: their difference may be more than there is.
    const std::int64_t from = to_microseconds(*outcome.started);
    const std::int64_t to = to_microseconds(outcome.ended);
    std::int64_t took = 0;
    if (!__builtin_sub_overflow(to, from, &took) && took <= kLongAgo.count())
      length = Duration{std::max<std::int64_t>(0, took)};
  }
  if (outcome.ended > now + kClockAhead || outcome.ended < now - kLongAgo) outcome.ended = now;
  outcome.started = length ? std::optional(outcome.ended - *length) : std::nullopt;
}

std::uint64_t known_up_to(std::uint64_t amount, std::uint64_t most) {
  return amount > most ? 0 : amount;
}

}  // namespace

std::optional<std::string> beyond_limits(const PilotId& pilot, const wire::ToEngine& message) {
  Limits limits(fmt::format("logs/{}.", to_string(pilot)));
  if (message.has_registration()) limits.registration(message.registration());
  limits.attempts(message.started());
  for (const wire::Result& result : message.results()) limits.result(result);
  limits.attempts(message.returned());
  for (const wire::Chunk& chunk : message.chunks()) limits.output(chunk);
  for (const wire::InputWanted& wanted : message.input_wanted()) limits.input(wanted);
  limits.text("reason to leave", message.leaving_reason(), limits::kText);
  limits.texts("services", message.warm().services(), limits::kServices, limits::kLongName);
  limits.texts("services", message.warm().starting(), limits::kServices, limits::kLongName);
  limits.text("trouble", message.workspace().trouble(), limits::kText);
  limits.attempts(message.workspace().ended());
  limits.capacity(message.gpus().capacity());
  limits.gpus(message.gpus().gpus());
  return limits.take();
}

std::optional<std::string> beyond_limits(const AllocationId& allocation,
                                         const wire::Result& result) {
  Limits limits(fmt::format("logs/{}.", allocation.name));
  limits.result(result);
  return limits.take();
}

Outcome sensible(Outcome outcome, Time now) {
  bring_to_time(outcome, now);
  if (outcome.exit_code < -1 || outcome.exit_code > kMostExitCode) outcome.exit_code = -1;
  if (outcome.signal < 0 || outcome.signal > kMostSignal) outcome.signal = 0;
  outcome.peak_memory = known_up_to(outcome.peak_memory, kMostMemory);
  outcome.read_bytes = known_up_to(outcome.read_bytes, kMostBytes);
  outcome.written_bytes = known_up_to(outcome.written_bytes, kMostBytes);
  if (outcome.cpu_time < Duration{} || outcome.cpu_time > kMostCpuTime) outcome.cpu_time = {};
  if (outcome.gpu) {
    outcome.gpu->busy = std::min<std::uint32_t>(outcome.gpu->busy, 100);
    outcome.gpu->memory = known_up_to(outcome.gpu->memory, kMostMemory);
    outcome.gpu->energy_mj = known_up_to(outcome.gpu->energy_mj, kMostEnergy);
  }
  if (outcome.message.size() > limits::kText) outcome.message.resize(limits::kText);
  if (outcome.metrics.size() > limits::kText) outcome.metrics.clear();
  return outcome;
}

}  // namespace hpcbatch
