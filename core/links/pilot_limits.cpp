#include "links/pilot_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace hpcbatch {
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
