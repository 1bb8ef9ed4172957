// Reads back what was alive when the engine last wrote.
#include "store/encoding.hpp"
#include "store/layout.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hpcbatch::store {
namespace {

Allocation read_allocation(sqlite::Statement& row) {
  const auto time = [&](int column) {
    const std::int64_t value = row.number(column);
    return value == 0 ? std::nullopt : std::optional(from_microseconds(value));
  };
  return {.id = AllocationId{row.text(0)},
          .site = row.text(1),
          .shape = row.text(2),
          .state = static_cast<AllocationState>(row.number(3)),
          .number = row.text(4),
          .opened = from_microseconds(row.number(5)),
          .running_since = time(6),
          .ended = time(7),
          .cause = static_cast<EndCause>(row.number(8)),
          .reason = row.text(9),
          .cancel_asked = row.number(10) != 0,
          .pilots_seen = static_cast<std::uint32_t>(row.number(11))};
}

class LiveArrayRows {
 public:
  explicit LiveArrayRows(sqlite::Connection& db)
      : db_(db),
        rows_(db.query("SELECT id,client,indices,needs,priority,retries,max_running,streams_input,"
                       "held,after,submitted FROM arrays WHERE ended=0 ORDER BY id")) {
    // Two columns more of each row cost a restart with a million arrays a tenth.
    sqlite::Statement few = db.query(
        "SELECT id,give_up_at,gives_up_running FROM arrays WHERE ended=0 AND give_up_at<>0");
    while (few.step()) {
      give_up_.emplace(static_cast<std::uint64_t>(few.number(0)),
                       GiveUp{static_cast<std::uint32_t>(few.number(1)), few.number(2) != 0});
    }
    sqlite::Statement inner = db.query(
        "SELECT w.array,w.task,w.item FROM submitted_within w JOIN arrays a ON a.id=w.array WHERE "
        "a.ended=0");
    while (inner.step()) {
      within_.emplace(static_cast<std::uint64_t>(inner.number(0)),
                      TaskId{{static_cast<std::uint64_t>(inner.number(1))},
                             static_cast<std::uint32_t>(inner.number(2))});
    }
  }

  const LiveArray* next() {
    if (!rows_.step()) return nullptr;
    live_.id = ArrayId{static_cast<std::uint64_t>(rows_.number(0))};
    if (differs(1, client_)) live_.client = *client_;
    live_.submitted = from_microseconds(rows_.number(10));
    live_.ok = {};
    live_.not_ok = {};
    live_.failed = {};
    if (differs(8, held_)) live_.held = decode_indices(*held_);
    NewArray& array = live_.array;
    if (differs(2, indices_)) array.indices = decode_indices(*indices_);
    if (differs(3, needs_)) array.needs = decode_needs(*needs_);
    array.priority = static_cast<std::int32_t>(rows_.number(4));
    array.retries = static_cast<std::uint32_t>(rows_.number(5));
    array.max_running = static_cast<std::uint32_t>(rows_.number(6));
    array.streams_input = rows_.number(7) != 0;
    const auto gives_up = give_up_.find(live_.id.value);
    const GiveUp give_up = gives_up == give_up_.end() ? GiveUp{} : gives_up->second;
    array.give_up_at = give_up.at;
    array.gives_up_running = give_up.running;
    const auto within = within_.find(live_.id.value);
    array.within = within == within_.end() ? std::nullopt : std::optional(within->second);
    if (differs(9, after_)) {
      After after = decode_after(*after_);
      array.after = std::move(after.dependencies);
      array.course = std::move(after.course);
    }
    // A single task that is alive has not ended.
    if (array.indices.size() > 1) read_ends();
    return &live_;
  }

 private:
  void read_ends() {
    sqlite::Statement ends = db_.query(
        "SELECT first,last,failure FROM results WHERE array=? "
        "ORDER BY first DESC");
    ends.bind(live_.id.value);
    while (ends.step()) {
      const IndexRange range{static_cast<std::uint32_t>(ends.number(0)),
                             static_cast<std::uint32_t>(ends.number(1))};
      (ends.number(2) == 0 ? live_.ok : live_.not_ok).add(range);
      if (live_.array.give_up_at != 0 &&
          is_a_failure_of_its_own(static_cast<Failure>(ends.number(2))))
        live_.failed.add(range);
    }
  }

  /// Most say what the one before them said, and need not be read again.
  bool differs(int column, std::optional<std::string>& before) {
    const std::string_view now = rows_.bytes(column);
    if (before == now) return false;
    before = now;
    return true;
  }

  struct GiveUp {
    std::uint32_t at{0};
    bool running{false};
  };

  sqlite::Connection& db_;
  sqlite::Statement rows_;
  std::unordered_map<std::uint64_t, GiveUp> give_up_;  ///< of those that do
  std::unordered_map<std::uint64_t, TaskId> within_;   ///< of those that a task submitted
  std::optional<std::string> client_, indices_, needs_, held_, after_;
  LiveArray live_;
};

/// Arrays that others wait for, and by which of their tasks.
std::map<ArrayId, IndexSet> read_waited_for(sqlite::Connection& db) {
  std::map<ArrayId, IndexSet> waited_for;
  sqlite::Statement waiting =
      db.query("SELECT indices,after FROM arrays WHERE ended=0 AND after<>x''");
  while (waiting.step()) {
    const IndexSet indices = decode_indices(waiting.text(0));
    for (const Dependency& dependency : decode_after(waiting.text(1)).dependencies)
      waited_for[dependency.array].add(indices);
  }
  return waited_for;
}

void read_failed_attempts(sqlite::Connection& db, Snapshot& snapshot) {
  sqlite::Statement attempts = db.query(
      "SELECT "
      "t.array,t.item,t.attempt,t.epoch,t.failure,t.message,t.pilot,t.node,t.charged,t.unexplained,"
      "t.started,t.ended "
      "FROM arrays a JOIN attempts t ON t.array=a.id WHERE a.ended=0 AND t.past=0 ORDER BY "
      "t.array,t.item,t.attempt");
  while (attempts.step()) {
    SaveFailedAttempt failed;
    failed.attempt = {{ArrayId{static_cast<std::uint64_t>(attempts.number(0))},
                       static_cast<std::uint32_t>(attempts.number(1))},
                      static_cast<std::uint32_t>(attempts.number(2)),
                      static_cast<std::uint64_t>(attempts.number(3))};
    failed.outcome.failure = static_cast<Failure>(attempts.number(4));
    failed.outcome.message = attempts.text(5);
    failed.pilot = parse_pilot(attempts.text(6)).value_or(PilotId{});
    failed.node = attempts.text(7);
    failed.charged = attempts.number(8) != 0;
    failed.unexplained = attempts.number(9) != 0;
    if (attempts.number(10) != 0) failed.outcome.started = from_microseconds(attempts.number(10));
    failed.outcome.ended = from_microseconds(attempts.number(11));
    snapshot.failed_attempts.push_back(std::move(failed));
  }
}

void read_allocations(sqlite::Connection& db, Snapshot& snapshot) {
  sqlite::Statement allocations = db.query("SELECT * FROM allocations WHERE state<>?");
  allocations.bind(static_cast<int>(AllocationState::Ended));
  while (allocations.step()) snapshot.allocations.push_back(read_allocation(allocations));
  for (Allocation& allocation : snapshot.allocations) {
    sqlite::Statement terms = db.query("SELECT terms FROM allocation_terms WHERE name=?");
    if (terms.bind(allocation.id.name).step()) decode_terms(terms.text(0), allocation);
  }
  sqlite::Statement proven =
      db.query("SELECT DISTINCT site,shape FROM allocations WHERE number<>x''");
  while (proven.step()) snapshot.proven.emplace_back(proven.text(0), proven.text(1));

  // More than these say nothing new.
  sqlite::Statement starts = db.query(
      "SELECT site,shape,opened,running_since FROM allocations WHERE running_since<>0 "
      "ORDER BY running_since DESC LIMIT 2000");
  while (starts.step()) {
    snapshot.past_starts.push_back({starts.text(0), starts.text(1),
                                    from_microseconds(starts.number(2)),
                                    from_microseconds(starts.number(3))});
  }
  std::reverse(snapshot.past_starts.begin(), snapshot.past_starts.end());
}

void read_speeds(RecordRows& records, Snapshot& snapshot) {
  for (const auto& [kind, profile] : records.profiles()) {
    for (const auto& [device, runs] : profile.on)
      snapshot.speeds.push_back({kind, device, runs.mean, runs.variance, runs.count});
  }
}

void read_keeps(sqlite::Connection& db, Snapshot& snapshot) {
  sqlite::Statement keeps = db.query("SELECT key,value FROM meta WHERE key>=? AND key<?");
  keeps.bind(kFirstKeep, kBehindKeeps);
  while (keeps.step()) {
    if (auto keep = decode_keep(keeps.text(0), keeps.text(1)))
      snapshot.keeps.push_back(std::move(*keep));
  }
}

void read_readers(sqlite::Connection& db, Snapshot& snapshot) {
  sqlite::Statement rows = db.query(
      "SELECT r.array,r.reader,r.lease FROM readers r JOIN arrays a ON a.id=r.array "
      "WHERE a.ended=0 ORDER BY r.array");
  while (rows.step()) {
    snapshot.readers.push_back({ArrayId{static_cast<std::uint64_t>(rows.number(0))},
                                {rows.text(1), Duration{rows.number(2)}}});
  }
}

void read_keys(sqlite::Connection& db, Snapshot& snapshot) {
  sqlite::Statement keys =
      db.query("SELECT client,key,content,id FROM arrays WHERE key<>x'' ORDER BY client,key,id");
  while (keys.step()) {
    const std::string client = keys.text(0);
    const std::string key = keys.text(1);
    if (snapshot.keys.empty() || snapshot.keys.back().client != client ||
        snapshot.keys.back().key != key) {
      snapshot.keys.push_back({client, key, static_cast<std::uint64_t>(keys.number(2)), {}});
    }
    snapshot.keys.back().ids.push_back(ArrayId{static_cast<std::uint64_t>(keys.number(3))});
  }
}

}  // namespace

LiveArrays Store::live_arrays() {
  return [rows = std::make_shared<LiveArrayRows>(db_)] { return rows->next(); };
}

Snapshot Store::begin() {
  Snapshot snapshot;
  snapshot.engine_start = std::stoull(meta("starts")) + 1;
  wait_for_disk(true);
  set_meta("starts", std::to_string(snapshot.engine_start));
  mark_.now.starts = snapshot.engine_start;
  note_commit(true);
  snapshot.engine_name = meta("engine");

  const std::string pruned_id = meta("pruned_array");
  snapshot.next_array = highest_id(db_) + 1;
  // Ids of pruned arrays are not given again.
  if (!pruned_id.empty())
    snapshot.next_array = std::max<std::uint64_t>(snapshot.next_array, std::stoull(pruned_id) + 1);
  mark_.now.highest = std::max(mark_.now.highest, snapshot.next_array - 1);

  for (const auto& [id, indices] : read_waited_for(db_)) {
    sqlite::Statement live = db_.query("SELECT 1 FROM arrays WHERE id=? AND ended=0");
    if (!live.bind(id.value).step())
      snapshot.ended.push_back(history_.ended_or_pruned(id, indices));
  }

  leases_known_ = false;
  leases_.load();
  leases_known_ = true;
  snapshot.leases = leases_.all();
  read_failed_attempts(db_, snapshot);
  read_allocations(db_, snapshot);
  read_keeps(db_, snapshot);
  read_speeds(records_, snapshot);
  read_readers(db_, snapshot);
  read_keys(db_, snapshot);
  return snapshot;
}

std::vector<Allocation> History::allocations(std::uint32_t limit) {
  sqlite::Statement rows = db_.query("SELECT * FROM allocations ORDER BY opened DESC LIMIT ?");
  rows.bind(limit);
  std::vector<Allocation> found;
  while (rows.step()) found.push_back(read_allocation(rows));
  return found;
}

std::vector<AllocationSums> History::allocation_sums(Time begin, Time end) {
  sqlite::Statement rows = db_.query(
      "SELECT site,count(*),"
      "sum(max(0,CASE WHEN running_since<>0 THEN running_since ELSE over END-opened)),"
      "sum(CASE WHEN running_since<>0 THEN max(0,over-running_since) ELSE 0 END) "
      "FROM (SELECT *,CASE WHEN ended<>0 THEN min(ended,?2) ELSE ?2 END AS over FROM allocations "
      "WHERE opened>=?1 AND opened<?2) GROUP BY site");
  rows.bind(to_microseconds(begin), to_microseconds(end));
  std::vector<AllocationSums> sums;
  while (rows.step()) {
    sums.push_back({rows.text(0), static_cast<std::uint64_t>(rows.number(1)),
                    Duration{rows.number(2)}, Duration{rows.number(3)}});
  }
  return sums;
}

std::vector<ShapeHeld> History::held(Time begin, Time end) {
  sqlite::Statement rows = db_.query(
      "SELECT site,shape,sum(min(CASE WHEN ended<>0 THEN ended ELSE ?2 "
      "END,?2)-max(running_since,?1)) "
      "FROM allocations WHERE running_since<>0 AND running_since<?2 AND (ended=0 OR ended>?1) "
      "GROUP BY site,shape");
  rows.bind(to_microseconds(begin), to_microseconds(end));
  std::vector<ShapeHeld> found;
  while (rows.step()) found.push_back({rows.text(0), rows.text(1), Duration{rows.number(2)}});
  return found;
}

std::vector<std::string> History::pilots_of_results() {
  sqlite::Statement rows = db_.query("SELECT pilot FROM results UNION SELECT pilot FROM attempts");
  std::vector<std::string> found;
  while (rows.step()) found.push_back(rows.text(0));
  return found;
}

std::optional<Allocation> History::allocation(const std::string& name) {
  sqlite::Statement row = db_.query("SELECT * FROM allocations WHERE name=?");
  if (!row.bind(name).step()) return std::nullopt;
  return read_allocation(row);
}

}  // namespace hpcbatch::store
