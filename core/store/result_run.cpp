#include "store/result_run.hpp"

#include "store/store.pb.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace hpcbatch::store {
namespace {

bool share_a_row(const SaveResult& a, const SaveResult& b) {
  return a.attempt.task.array == b.attempt.task.array &&
         a.attempt.task.index + 1 == b.attempt.task.index && ended_well(a.outcome) &&
         ended_well(b.outcome) && a.pilot == b.pilot && a.node == b.node &&
         a.outcome.log.file == b.outcome.log.file;
}

/// Both directions: what a number was before is remembered.
class Steps {
 public:
  // Unsigned: a pilot's clock may say anything.
  std::int64_t to(std::int64_t value) {
    const auto now = static_cast<std::uint64_t>(value);
    return static_cast<std::int64_t>(now - std::exchange(before_, now));
  }
  std::int64_t by(std::int64_t step) {
    before_ += static_cast<std::uint64_t>(step);
    return static_cast<std::int64_t>(before_);
  }

 private:
  std::uint64_t before_{0};
};

/// Rows of older programs have none.
std::uint64_t at_or_none(const google::protobuf::RepeatedField<std::uint64_t>& numbers, int place) {
  return place < numbers.size() ? numbers.Get(place) : 0;
}

void add(TaskDetails& details, Steps (&steps)[3], std::uint32_t attempt, std::uint64_t epoch,
         const Outcome& outcome) {
  details.add_attempt(attempt);
  details.add_epoch(steps[0].to(static_cast<std::int64_t>(epoch)));
  details.add_started_us(steps[1].to(to_microseconds(*outcome.started)));
  details.add_ended_us(steps[2].to(to_microseconds(outcome.ended)));
  details.add_peak_memory(outcome.peak_memory);
  details.add_cpu_us(static_cast<std::uint64_t>(outcome.cpu_time.count()));
  details.add_last_out(outcome.log.last_out);
  details.add_last_err(outcome.log.last_err);
  details.add_out_bytes(outcome.log.out_bytes);
  details.add_err_bytes(outcome.log.err_bytes);
  details.add_truncated(outcome.log.truncated);
  details.add_read_bytes(outcome.read_bytes);
  details.add_written_bytes(outcome.written_bytes);
}

Duration staging_at(const google::protobuf::RepeatedField<std::uint64_t>& microseconds, int place) {
  return Duration{static_cast<std::int64_t>(at_or_none(microseconds, place))};
}

/// Of files and devices and what was done with them; most rows are of tasks without.
void add_seldom(TaskDetails& details, const std::vector<const Outcome*>& outcomes) {
  const auto any = [&](auto is_known) {
    return std::any_of(outcomes.begin(), outcomes.end(), is_known);
  };
  if (any([](const Outcome* one) { return one->gpu.has_value(); })) {
    for (const Outcome* one : outcomes) {
      const GpuUse use = one->gpu.value_or(GpuUse{});
      details.add_gpu_busy(one->gpu ? use.busy + 1 : 0);
      details.add_gpu_memory(use.memory);
      details.add_gpu_energy_mj(use.energy_mj);
    }
  }
  if (any([](const Outcome* one) {
        return one->staged_in != Duration{} || one->staged_out != Duration{};
      })) {
    for (const Outcome* one : outcomes) {
      details.add_staged_in_us(static_cast<std::uint64_t>(one->staged_in.count()));
      details.add_staged_out_us(static_cast<std::uint64_t>(one->staged_out.count()));
    }
  }
  if (any([](const Outcome* one) { return !one->device.empty(); }))
    for (const Outcome* one : outcomes) details.add_device(one->device);
  if (any([](const Outcome* one) { return !one->cpus.empty(); }))
    for (const Outcome* one : outcomes) details.add_cpus(one->cpus);
}

template <class Details>
std::optional<GpuUse> gpu_use_at(const Details& details, int place) {
  if (place >= details.gpu_busy_size() || details.gpu_busy(place) == 0) return std::nullopt;
  return GpuUse{details.gpu_busy(place) - 1, at_or_none(details.gpu_memory(), place), 0};
}

template <class Details>
std::string device_at(const Details& details, int place) {
  return place < details.device_size() ? details.device(place) : std::string();
}

}  // namespace

bool ended_well(const Outcome& outcome) {
  return outcome.failure == Failure::Ok && outcome.exit_code == 0 && outcome.signal == 0 &&
         outcome.message.empty() && outcome.started.has_value() && !outcome.log.lost;
}

std::vector<std::vector<const SaveResult*>> runs_of(std::vector<const SaveResult*> results) {
  std::stable_sort(results.begin(), results.end(), [](const SaveResult* a, const SaveResult* b) {
    return a->attempt.task < b->attempt.task;
  });
  std::vector<std::vector<const SaveResult*>> runs;
  for (const SaveResult* result : results) {
    if (runs.empty() || !share_a_row(*runs.back().back(), *result)) runs.emplace_back();
    runs.back().push_back(result);
  }
  // In the order in which they came: who ended first is the cause that dependants are told.
  const auto first_of = [](const std::vector<const SaveResult*>& run) {
    return *std::min_element(run.begin(), run.end(), std::less<>{});
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const auto& a, const auto& b) {
    return std::less<>{}(first_of(a), first_of(b));
  });
  return runs;
}

std::string encode_details(const std::vector<const SaveResult*>& run) {
  TaskDetails details;
  Steps steps[3];
  for (const SaveResult* result : run)
    add(details, steps, result->attempt.number, result->attempt.epoch, result->outcome);
  std::vector<const Outcome*> outcomes;
  outcomes.reserve(run.size());
  for (const SaveResult* result : run) outcomes.push_back(&result->outcome);
  add_seldom(details, outcomes);
  return details.SerializeAsString();
}

std::vector<OwnDetails> decode_details(const std::string& bytes) {
  TaskDetails details;
  if (!details.ParseFromString(bytes))
    throw std::runtime_error("the store holds damaged details of results");
  const int count = details.attempt_size();
  for (const int size : {details.epoch_size(), details.started_us_size(), details.ended_us_size(),
                         details.peak_memory_size(), details.cpu_us_size(), details.last_out_size(),
                         details.last_err_size(), details.out_bytes_size(),
                         details.err_bytes_size(), details.truncated_size()}) {
    if (size != count) throw std::runtime_error("the store holds damaged details of results");
  }
  std::vector<OwnDetails> own(static_cast<std::size_t>(count));
  Steps steps[3];
  for (int i = 0; i < count; ++i) {
    OwnDetails& task = own[static_cast<std::size_t>(i)];
    task.attempt = details.attempt(i);
    task.epoch = static_cast<std::uint64_t>(steps[0].by(details.epoch(i)));
    task.outcome.started = from_microseconds(steps[1].by(details.started_us(i)));
    task.outcome.ended = from_microseconds(steps[2].by(details.ended_us(i)));
    task.outcome.peak_memory = details.peak_memory(i);
    task.outcome.cpu_time = Duration{static_cast<std::int64_t>(details.cpu_us(i))};
    task.outcome.log = {"",
                        details.last_out(i),
                        details.last_err(i),
                        details.out_bytes(i),
                        details.err_bytes(i),
                        details.truncated(i)};
    task.outcome.read_bytes = at_or_none(details.read_bytes(), i);
    task.outcome.written_bytes = at_or_none(details.written_bytes(), i);
    task.outcome.staged_in = staging_at(details.staged_in_us(), i);
    task.outcome.staged_out = staging_at(details.staged_out_us(), i);
    task.outcome.gpu = gpu_use_at(details, i);
    if (task.outcome.gpu) task.outcome.gpu->energy_mj = at_or_none(details.gpu_energy_mj(), i);
    task.outcome.device = device_at(details, i);
    if (i < details.cpus_size()) task.outcome.cpus = details.cpus(i);
  }
  return own;
}

std::vector<OwnTimes> decode_times(std::string_view bytes) {
  TaskDetailsTimes details;
  const int count = details.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))
                        ? details.started_us_size()
                        : -1;
  if (details.ended_us_size() != count || details.cpu_us_size() != count)
    throw std::runtime_error("the store holds damaged details of results");
  std::vector<OwnTimes> own(static_cast<std::size_t>(count));
  Steps started, ended;
  for (int i = 0; i < count; ++i) {
    own[static_cast<std::size_t>(i)] = {from_microseconds(started.by(details.started_us(i))),
                                        from_microseconds(ended.by(details.ended_us(i))),
                                        Duration{static_cast<std::int64_t>(details.cpu_us(i))}};
  }
  return own;
}

std::vector<OwnUse> decode_use(std::string_view bytes) {
  TaskDetailsUse details;
  const int count = details.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))
                        ? details.attempt_size()
                        : -1;
  for (const int size : {details.epoch_size(), details.started_us_size(), details.ended_us_size(),
                         details.peak_memory_size(), details.cpu_us_size()}) {
    if (size != count) throw std::runtime_error("the store holds damaged details of results");
  }
  std::vector<OwnUse> own(static_cast<std::size_t>(count));
  Steps epoch, started, ended;
  for (int i = 0; i < count; ++i) {
    own[static_cast<std::size_t>(i)] = {details.attempt(i),
                                        static_cast<std::uint64_t>(epoch.by(details.epoch(i))),
                                        {from_microseconds(started.by(details.started_us(i))),
                                         from_microseconds(ended.by(details.ended_us(i))),
                                         Duration{static_cast<std::int64_t>(details.cpu_us(i))}},
                                        details.peak_memory(i),
                                        at_or_none(details.read_bytes(), i),
                                        at_or_none(details.written_bytes(), i),
                                        staging_at(details.staged_in_us(), i),
                                        staging_at(details.staged_out_us(), i),
                                        gpu_use_at(details, i),
                                        device_at(details, i)};
  }
  return own;
}

std::string cut_details(const std::string& bytes, std::size_t from, std::size_t count) {
  const std::vector<OwnDetails> all = decode_details(bytes);
  TaskDetails details;
  Steps steps[3];
  for (std::size_t i = from; i < from + count; ++i)
    add(details, steps, all.at(i).attempt, all.at(i).epoch, all.at(i).outcome);
  std::vector<const Outcome*> outcomes;
  for (std::size_t i = from; i < from + count; ++i) outcomes.push_back(&all[i].outcome);
  add_seldom(details, outcomes);
  return details.SerializeAsString();
}

namespace {

enum Cut : std::uint8_t { None, Truncated, Lost };

}  // namespace

int cut_of(const LogPlace& log) {
  return log.lost ? Cut::Lost : log.truncated ? Cut::Truncated : Cut::None;
}

LogPlace read_log_place(sqlite::Statement& row, int first) {
  return {row.text(first),
          static_cast<std::uint64_t>(row.number(first + 1)),
          static_cast<std::uint64_t>(row.number(first + 2)),
          static_cast<std::uint64_t>(row.number(first + 3)),
          static_cast<std::uint64_t>(row.number(first + 4)),
          row.number(first + 5) != Cut::None,
          row.number(first + 5) == Cut::Lost};
}

ResultRow read_result(sqlite::Statement& row) {
  ResultRow result{.sequence = static_cast<std::uint64_t>(row.number(0)),
                   .array = ArrayId{static_cast<std::uint64_t>(row.number(1))},
                   .indices = {static_cast<std::uint32_t>(row.number(2)),
                               static_cast<std::uint32_t>(row.number(3))},
                   .attempt = static_cast<std::uint32_t>(row.number(4))};
  Outcome& outcome = result.outcome;
  outcome.failure = static_cast<Failure>(row.number(5));
  outcome.exit_code = static_cast<std::int32_t>(row.number(6));
  outcome.signal = static_cast<std::int32_t>(row.number(7));
  outcome.message = row.text(8);
  if (row.number(9) != 0) outcome.started = from_microseconds(row.number(9));
  outcome.ended = from_microseconds(row.number(10));
  result.pilot = row.text(11);
  result.node = row.text(12);
  outcome.peak_memory = static_cast<std::uint64_t>(row.number(13));
  outcome.cpu_time = Duration{row.number(14)};
  outcome.log = read_log_place(row, 15);
  result.epoch = static_cast<std::uint64_t>(row.number(21));
  return result;
}

void pick(ResultRow& row, const OwnDetails& own, std::uint32_t index) {
  row.indices = {index, index};
  row.attempt = own.attempt;
  row.epoch = own.epoch;
  const std::string file = row.outcome.log.file;
  row.outcome = own.outcome;
  row.outcome.log.file = file;
}

}  // namespace hpcbatch::store
