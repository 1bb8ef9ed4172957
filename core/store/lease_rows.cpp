#include "store/lease_rows.hpp"

#include "store/result_run.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch::store {
namespace {

IndexRange overlap(IndexRange a, IndexRange b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

/// The head as any pilot, and the ranks of the others behind it: NAME.0+1+2.
std::string text_of(const SaveLeases& leases) {
  std::string text = to_string(leases.pilot);
  for (const std::uint32_t rank : leases.members) text.append("+").append(std::to_string(rank));
  return text;
}

std::optional<std::pair<PilotId, std::vector<std::uint32_t>>> parse_pilots(std::string_view text) {
  const std::size_t end = std::min(text.find('+'), text.size());
  const auto head = parse_pilot(text.substr(0, end));
  if (!head) return std::nullopt;
  std::vector<std::uint32_t> members;
  for (std::string_view rest = text.substr(end); !rest.empty();) {
    rest.remove_prefix(1);
    const std::size_t length = std::min(rest.find('+'), rest.size());
    const auto rank = number_in<std::uint32_t>(rest.substr(0, length));
    if (!rank) return std::nullopt;
    members.push_back(*rank);
    rest.remove_prefix(length);
  }
  return std::pair(*head, std::move(members));
}

}  // namespace

void LeaseRows::load() {
  rows_.clear();
  {
    sqlite::Statement rows =
        db_.query("SELECT array,first,last,attempt,epoch,pilot,cancelled,permitted FROM leases");
    while (rows.step()) {
      const TaskId first{ArrayId{static_cast<std::uint64_t>(rows.number(0))},
                         static_cast<std::uint32_t>(rows.number(1))};
      rows_[first] = {.last = static_cast<std::uint32_t>(rows.number(2)),
                      .attempt = static_cast<std::uint32_t>(rows.number(3)),
                      .epoch = static_cast<std::uint64_t>(rows.number(4)),
                      .pilot = rows.text(5),
                      .cancelled = rows.number(6) != 0,
                      .permitted = rows.number(7) != 0};
    }
  }
  for (auto at = rows_.begin(); at != rows_.end();) {
    look_for_results(at->first, at->second);
    at = is_over(at) ? erase(at) : std::next(at);
  }
}

void LeaseRows::look_for_results(TaskId first, Row& row) {
  // Rows of results do not overlap: of those that begin before, the last one alone can reach in.
  sqlite::Statement results = db_.query(
      "SELECT first,last,epoch,details FROM results WHERE array=?1 AND last>=?2 AND first BETWEEN "
      "coalesce((SELECT max(first) FROM results WHERE array=?1 AND first<=?2),?2) AND ?3");
  results.bind(first.array.value, first.index, row.last);
  while (results.step()) {
    const IndexRange range{static_cast<std::uint32_t>(results.number(0)),
                           static_cast<std::uint32_t>(results.number(1))};
    const std::string bytes = results.text(3);
    const std::vector<OwnDetails> details =
        bytes.empty() ? std::vector<OwnDetails>{} : decode_details(bytes);
    if (!details.empty() && details.size() != std::uint64_t{range.last} - range.first + 1)
      throw std::runtime_error("the store holds damaged details of results");
    const IndexRange both = overlap(range, {first.index, row.last});
    for (std::uint64_t i = both.first; i <= both.last; ++i) {
      const std::uint64_t epoch = details.empty() ? static_cast<std::uint64_t>(results.number(2))
                                                  : details.at(i - range.first).epoch;
      if (epoch == row.epoch + (i - first.index)) row.over.add(static_cast<std::uint32_t>(i));
    }
  }
}

std::vector<StoredLease> LeaseRows::all() const {
  std::vector<StoredLease> leases;
  for (const auto& [first, row] : rows_) {
    const auto pilots = parse_pilots(row.pilot);
    if (!pilots) continue;
    for (std::uint64_t i = first.index; i <= row.last; ++i) {
      const auto index = static_cast<std::uint32_t>(i);
      if (row.over.contains(index)) continue;
      leases.push_back({{{first.array, index}, row.attempt, row.epoch + (i - first.index)},
                        pilots->first,
                        row.cancelled,
                        row.permitted,
                        pilots->second});
    }
  }
  return leases;
}

void LeaseRows::add(const SaveLeases& leases) {
  const std::string pilot = text_of(leases);
  const std::vector<AttemptId>& attempts = leases.attempts;
  for (std::size_t begin = 0; begin < attempts.size();) {
    std::size_t end = begin + 1;
    while (end < attempts.size() && attempts[end] == neighbour(attempts[end - 1], 1)) ++end;
    const AttemptId& first = attempts[begin];
    const IndexRange range{first.task.index, attempts[end - 1].task.index};
    // One lease a task: an earlier one is no more.
    for (auto at = first_with(first.task.array, range);
         at != rows_.end() && at->first <= attempts[end - 1].task;
         at = first_with(first.task.array, range)) {
      carve(at, range);
    }
    insert(first.task, {.last = attempts[end - 1].task.index,
                        .attempt = first.number,
                        .epoch = first.epoch,
                        .pilot = pilot});
    begin = end;
  }
}

void LeaseRows::over(const AttemptId& attempt) {
  const TaskId task = attempt.task;
  const auto at = row_with(task);
  if (at == rows_.end()) return;
  Row& row = at->second;
  // A result of another attempt says nothing when the rows are read again.
  if (row.epoch + (task.index - at->first.index) != attempt.epoch) return remove(task);
  row.over.add(task.index);
  if (is_over(at)) erase(at);
}

void LeaseRows::remove(TaskId task) {
  if (const auto at = row_with(task); at != rows_.end()) carve(at, {task.index, task.index});
}

void LeaseRows::mark(TaskId task, bool Row::*what) {
  const auto at = row_with(task);
  if (at == rows_.end() || at->second.over.contains(task.index)) return;
  Row row = carve(at, {task.index, task.index});
  row.*what = true;
  insert(task, std::move(row));
}

void LeaseRows::withdraw(ArrayId array, IndexRange range) {
  std::vector<TaskId> stale;
  for (auto at = first_with(array, range);
       at != rows_.end() && at->first <= TaskId{array, range.last}; ++at) {
    const IndexSet gone = at->second.over.intersection(range);
    for (const IndexRange& part : gone.ranges()) {
      for (std::uint64_t i = part.first; i <= part.last; ++i)
        stale.push_back({array, static_cast<std::uint32_t>(i)});
    }
  }
  for (const TaskId task : stale) remove(task);
}

bool LeaseRows::is_over(Rows::const_iterator at) {
  return at->second.over.size() == std::uint64_t{at->second.last} - at->first.index + 1;
}

LeaseRows::Rows::iterator LeaseRows::first_with(ArrayId array, IndexRange range) {
  const auto holding = row_with({array, range.first});
  return holding != rows_.end() ? holding : rows_.lower_bound({array, range.first});
}

LeaseRows::Rows::iterator LeaseRows::row_with(TaskId task) {
  auto at = rows_.upper_bound(task);
  if (at == rows_.begin()) return rows_.end();
  --at;
  const bool holds = at->first.array == task.array && task.index <= at->second.last;
  return holds ? at : rows_.end();
}

void LeaseRows::insert(TaskId first, Row row) {
  db_.query("INSERT OR REPLACE INTO leases VALUES(?,?,?,?,?,?,?,?)")
      .run(first.array.value, first.index, row.last, row.attempt, row.epoch, row.pilot,
           row.cancelled, row.permitted);
  rows_[first] = std::move(row);
}

LeaseRows::Rows::iterator LeaseRows::erase(Rows::iterator at) {
  db_.query("DELETE FROM leases WHERE array=? AND first=?")
      .run(at->first.array.value, at->first.index);
  return rows_.erase(at);
}

LeaseRows::Row LeaseRows::carve(Rows::iterator at, IndexRange range) {
  const TaskId first = at->first;
  const Row whole = at->second;
  erase(at);
  const auto piece = [&](IndexRange part) {
    Row row = whole;
    row.last = part.last;
    row.epoch = whole.epoch + (part.first - first.index);
    row.over = whole.over.intersection(part);
    return row;
  };
  const auto keep = [&](std::uint32_t from, std::uint32_t to) {
    const IndexRange part{from, to};
    Row row = piece(part);
    if (row.over.size() != std::uint64_t{part.last} - part.first + 1)
      insert({first.array, part.first}, std::move(row));
  };
  if (first.index < range.first) keep(first.index, range.first - 1);
  if (range.last < whole.last) keep(range.last + 1, whole.last);
  return piece(overlap(range, {first.index, whole.last}));
}

}  // namespace hpcbatch::store
