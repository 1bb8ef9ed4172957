#include "store/encoding.hpp"

#include "store/store.pb.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hpcbatch::store {
namespace {

// One field a line: names and tags hold no line ends, the API sees to that.
constexpr char kEnd = '\n';

}  // namespace

std::string encode(const Needs& needs) {
  std::string text;
  for (const auto& [name, amount] : needs.amounts.entries())
    text += fmt::format("a{} {}{}", amount.ticks, name, kEnd);
  for (const Resources& other : needs.device->instead) {
    // Where the amounts of the next way begin.
    text += fmt::format("w{}", kEnd);
    for (const auto& [name, amount] : other.entries())
      text += fmt::format("i{} {}{}", amount.ticks, name, kEnd);
  }
  if (!needs.device->kind.empty()) text += fmt::format("k{}{}", needs.device->kind, kEnd);
  if (needs.time) text += fmt::format("t{}{}", needs.time->count(), kEnd);
  if (needs.time_request) text += fmt::format("l{}{}", needs.time_request->count(), kEnd);
  if (!needs.site.empty()) text += fmt::format("s{}{}", needs.site, kEnd);
  for (const std::string& site : needs.not_on) text += fmt::format("x{}{}", site, kEnd);
  for (const std::string& site : needs.staged_to) text += fmt::format("b{}{}", site, kEnd);
  if (needs.own_files) text += fmt::format("o{}", kEnd);
  for (const std::string& tag : needs.tags) text += fmt::format("g{}{}", tag, kEnd);
  if (needs.nodes != 1) text += fmt::format("n{}{}", needs.nodes, kEnd);
  if (!needs.service.empty()) text += fmt::format("v{}{}", needs.service, kEnd);
  if (needs.guess) {
    text += fmt::format("e{} {:d} {} {:d}{}", needs.guess->runs, needs.guess->memory,
                        needs.guess->memory_asked.ticks, needs.guess->time, kEnd);
  }
  if (needs.guess && needs.guess->gpus) {
    // Of an older program's guess there is no such line.
    text += fmt::format("p{}{}", needs.guess->gpus_asked.ticks, kEnd);
  }
  return text;
}

namespace {

void add_amount(Resources& amounts, const std::string& text) {
  const auto space = text.find(' ');
  if (space == std::string::npos) throw std::runtime_error("the store holds a damaged need");
  amounts.set(text.substr(space + 1), Amount{std::stoll(text.substr(0, space))});
}

void read_way(char key, const std::string& rest, Needs& needs) {
  if (key == 'a') return add_amount(needs.amounts, rest);
  if (key == 'w') {
    needs.device.edit().instead.emplace_back();
    return;
  }
  if (needs.device->instead.empty()) throw std::runtime_error("the store holds a damaged need");
  add_amount(needs.device.edit().instead.back(), rest);
}

void read_guess(char key, const std::string& rest, Needs& needs) {
  if (key == 'e') {
    std::istringstream fields(rest);
    Guess& guess = needs.guess.emplace();
    if (!(fields >> guess.runs >> guess.memory >> guess.memory_asked.ticks >> guess.time))
      throw std::runtime_error("the store holds a damaged need");
    return;
  }
  if (!needs.guess) throw std::runtime_error("the store holds a damaged need");
  needs.guess->gpus = true;
  needs.guess->gpus_asked = Amount{std::stoll(rest)};
}

}  // namespace

Needs decode_needs(const std::string& text) {
  Needs needs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, kEnd);) {
    if (line.empty()) throw std::runtime_error("the store holds a damaged need");
    const std::string rest = line.substr(1);
    switch (line[0]) {
      case 'a':
      case 'w':
      case 'i':
        read_way(line[0], rest, needs);
        break;
      case 'k':
        needs.device.edit().kind = rest;
        break;
      case 't':
        needs.time = Duration{std::stoll(rest)};
        break;
      case 'l':
        needs.time_request = Duration{std::stoll(rest)};
        break;
      case 's':
        needs.site = rest;
        break;
      case 'x':
        needs.not_on.push_back(rest);
        break;
      case 'b':
        needs.staged_to.push_back(rest);
        break;
      case 'o':
        needs.own_files = true;
        break;
      case 'g':
        needs.tags.push_back(rest);
        break;
      case 'n':
        needs.nodes = static_cast<std::uint32_t>(std::stoul(rest));
        break;
      case 'v':
        needs.service = rest;
        break;
      case 'e':
      case 'p':
        read_guess(line[0], rest, needs);
        break;
      default:
        throw std::runtime_error("the store holds a need of a newer version");
    }
  }
  return needs;
}

// A dependency is a line of three fields that begins with a digit; what else there is has a letter
// before it, as in needs.
std::string encode(const std::vector<Dependency>& dependencies, const Course& course) {
  std::string text;
  for (const Dependency& dependency : dependencies) {
    const std::string delay =
        dependency.delay == Duration{} ? "" : fmt::format("+{}", dependency.delay.count());
    text += fmt::format("{} {} {}{}{}", static_cast<int>(dependency.kind), dependency.array.value,
                        dependency.index ? std::to_string(*dependency.index) : "-", delay, kEnd);
  }
  if (course.begin) text += fmt::format("b{}{}", to_microseconds(*course.begin), kEnd);
  if (course.deadline) text += fmt::format("d{}{}", to_microseconds(*course.deadline), kEnd);
  if (course.any_of_after) text += fmt::format("e{}", kEnd);
  if (!course.singleton.empty()) text += fmt::format("s{}{}", course.singleton, kEnd);
  if (course.no_requeue) text += fmt::format("q{}", kEnd);
  if (course.requeue_exit != 0) text += fmt::format("x{}{}", course.requeue_exit, kEnd);
  if (course.retry_memory != 0) text += fmt::format("m{}{}", course.retry_memory, kEnd);
  if (course.retry_time != 0) text += fmt::format("t{}{}", course.retry_time, kEnd);
  return text;
}

namespace {

Dependency read_dependency(const std::string& line) {
  std::istringstream fields(line);
  int kind = 0;
  std::uint64_t array = 0;
  std::string index;
  if (!(fields >> kind >> array >> index))
    throw std::runtime_error("the store holds a damaged dependency");
  Dependency dependency{
      .array = ArrayId{array}, .index = {}, .kind = static_cast<Dependency::Kind>(kind)};
  if (const std::size_t plus = index.find('+'); plus != std::string::npos) {
    dependency.delay = Duration{std::stoll(index.substr(plus + 1))};
    index.erase(plus);
  }
  if (index != "-") dependency.index = static_cast<std::uint32_t>(std::stoul(index));
  return dependency;
}

void read_course(char key, const std::string& rest, Course& course) {
  switch (key) {
    case 'b':
      course.begin = from_microseconds(std::stoll(rest));
      break;
    case 'd':
      course.deadline = from_microseconds(std::stoll(rest));
      break;
    case 'e':
      course.any_of_after = true;
      break;
    case 's':
      course.singleton = rest;
      break;
    case 'q':
      course.no_requeue = true;
      break;
    case 'x':
      course.requeue_exit = static_cast<std::uint8_t>(std::stoul(rest));
      break;
    case 'm':
      course.retry_memory = static_cast<std::uint32_t>(std::stoul(rest));
      break;
    case 't':
      course.retry_time = static_cast<std::uint32_t>(std::stoul(rest));
      break;
    default:
      throw std::runtime_error("the store holds a course of a newer version");
  }
}

}  // namespace

After decode_after(const std::string& text) {
  After after;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, kEnd);) {
    if (line.empty()) throw std::runtime_error("the store holds a damaged dependency");
    if (line[0] >= '0' && line[0] <= '9')
      after.dependencies.push_back(read_dependency(line));
    else
      read_course(line[0], line.substr(1), after.course.edit());
  }
  return after;
}

std::string encode(const IndexSet& set) {
  return to_string(set);
}

IndexSet decode_indices(std::string_view text) {
  if (text.empty()) return {};
  const auto set = parse_index_set(text);
  if (!set) throw std::runtime_error("the store holds damaged indices");
  return *set;
}

std::string key_of_keep(const Keep& keep) {
  return fmt::format("{}{}{}{}", kFirstKeep, keep.site, kEnd, keep.shape);
}

std::string encode(const Keep& keep) {
  return fmt::format("{} {} {} {} {}", keep.allocations, to_microseconds(keep.until),
                     to_microseconds(keep.since), keep.missing.count(), keep.beyond.count());
}

std::optional<Keep> decode_keep(const std::string& key, const std::string& text) {
  const auto end = key.find(kEnd);
  if (end == std::string::npos || !key.starts_with(kFirstKeep)) return std::nullopt;
  Keep keep{.site = key.substr(kFirstKeep.size(), end - kFirstKeep.size()),
            .shape = key.substr(end + 1)};
  std::int64_t until = 0, since = 0, missing = 0, beyond = 0;
  std::istringstream fields(text);
  if (!(fields >> keep.allocations >> until >> since >> missing >> beyond)) return std::nullopt;
  keep.until = from_microseconds(until);
  keep.since = from_microseconds(since);
  keep.missing = Duration{missing};
  keep.beyond = Duration{beyond};
  return keep;
}

std::string encode_terms(const Allocation& allocation) {
  AllocationTerms terms;
  if (const auto& asked = allocation.asked) {
    terms.set_asked(true);
    terms.set_nodes(asked->nodes);
    terms.set_walltime_us(asked->walltime.count());
    for (const auto& [name, amount] : asked->capacity.entries()) {
      terms.add_names(name);
      terms.add_amounts(amount.ticks);
    }
  }
  for (const std::uint32_t rank : allocation.fenced) terms.add_fenced(rank);
  return terms.SerializeAsString();
}

void decode_terms(std::string_view bytes, Allocation& allocation) {
  AllocationTerms terms;
  if (!terms.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  allocation.fenced = {terms.fenced().begin(), terms.fenced().end()};
  if (!terms.asked()) return;
  AskedFor asked{terms.nodes(), {}, Duration{terms.walltime_us()}};
  const int known = std::min(terms.names_size(), terms.amounts_size());
  for (int i = 0; i < known; ++i) asked.capacity.set(terms.names(i), Amount{terms.amounts(i)});
  allocation.asked = std::move(asked);
}

namespace {

// Counts are kept in sixteenths: what counts less is gone.
constexpr float kParts = 16;

void put(Spread& message, const records::Sketch& sketch) {
  message.set_zeros(sketch.zeros());
  message.set_lowest(sketch.lowest());
  for (const float count : sketch.counts())
    message.add_counts(static_cast<std::uint32_t>(std::min(count * kParts + 0.5F, 4e9F)));
}

records::Sketch sketch_of(const Spread& message) {
  std::vector<float> counts;
  counts.reserve(static_cast<std::size_t>(message.counts_size()));
  for (const std::uint32_t count : message.counts())
    counts.push_back(static_cast<float>(count) / kParts);
  return records::Sketch::of(message.zeros(), message.lowest(), std::move(counts));
}

}  // namespace

std::string encode(const records::Usage& usage) {
  UsageSums message;
  for (const auto sum : records::kUsageSums) message.add_sum(usage.*sum);
  return message.SerializeAsString();
}

records::Usage decode_usage(std::string_view bytes) {
  records::Usage usage;
  UsageSums message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return usage;
  // One that was written by an older program has fewer.
  const int known = std::min(message.sum_size(), static_cast<int>(records::kUsageSums.size()));
  for (int i = 0; i < known; ++i)
    usage.*records::kUsageSums[static_cast<std::size_t>(i)] = message.sum(i);
  return usage;
}

std::string encode(const records::Profile& profile) {
  KindProfile message;
  put(*message.mutable_run(), profile.run);
  put(*message.mutable_memory(), profile.memory);
  put(*message.mutable_cpus(), profile.cpus);
  put(*message.mutable_wait(), profile.wait);
  put(*message.mutable_read_bytes(), profile.read_bytes);
  put(*message.mutable_written_bytes(), profile.written_bytes);
  put(*message.mutable_gpu_busy(), profile.gpu_busy);
  put(*message.mutable_gpu_memory(), profile.gpu_memory);
  put(*message.mutable_staged_in(), profile.staged_in);
  put(*message.mutable_staged_out(), profile.staged_out);
  for (const auto& [device, runs] : profile.on) {
    RunsOn& on = *message.add_on();
    on.set_device(device);
    on.set_mean(runs.mean);
    on.set_variance(runs.variance);
    on.set_count(runs.count);
  }
  message.set_cpus_asked(profile.cpus_asked);
  message.set_gpus_asked(profile.gpus_asked);
  message.set_memory_asked(profile.memory_asked);
  return message.SerializeAsString();
}

records::Profile decode_profile(std::string_view bytes) {
  KindProfile message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  records::Profile profile{sketch_of(message.run()),
                           sketch_of(message.memory()),
                           sketch_of(message.cpus()),
                           sketch_of(message.wait()),
                           sketch_of(message.read_bytes()),
                           sketch_of(message.written_bytes()),
                           sketch_of(message.gpu_busy()),
                           sketch_of(message.gpu_memory()),
                           sketch_of(message.staged_in()),
                           sketch_of(message.staged_out()),
                           {}};
  for (const RunsOn& on : message.on())
    profile.on[on.device()] = {on.mean(), on.variance(), on.count()};
  profile.cpus_asked = message.cpus_asked();
  profile.gpus_asked = message.gpus_asked();
  profile.memory_asked = message.memory_asked();
  return profile;
}

}  // namespace hpcbatch::store
