#include "store/read_results.hpp"

namespace hpcbatch::store {

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
