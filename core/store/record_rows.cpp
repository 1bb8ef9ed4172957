#include "store/record_rows.hpp"

#include "records/estimate.hpp"
#include "store/encoding.hpp"
#include "store/layout.hpp"
#include "store/result_run.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

namespace hpcbatch::store {
namespace {

constexpr const char* kCursor = "learned";
// Of a store that was there before anything was learned, no more is read.
constexpr std::int64_t kOldRowsRead = 200'000;
constexpr int kRowsAtOnce = 5'000;
constexpr std::chrono::days kKindForgotten{60};

/// The columns of one result that are learned from.
struct Ended {
  std::uint64_t sequence{0};
  ArrayId array;
  IndexRange indices;
  std::uint32_t attempt{0};
  std::uint64_t epoch{0};
  records::Run run;
  std::string pilot;
  std::string_view details;  ///< until the row is left
};

std::optional<Time> time_or_none(std::int64_t microseconds) {
  return microseconds == 0 ? std::nullopt : std::optional(from_microseconds(microseconds));
}

Ended read_ended(const sqlite::Statement& row) {
  Ended ended{.sequence = static_cast<std::uint64_t>(row.number(0)),
              .array = ArrayId{static_cast<std::uint64_t>(row.number(1))},
              .indices = {static_cast<std::uint32_t>(row.number(2)),
                          static_cast<std::uint32_t>(row.number(3))},
              .attempt = static_cast<std::uint32_t>(row.number(4)),
              .epoch = static_cast<std::uint64_t>(row.number(10)),
              .pilot = row.text(8),
              .details = row.bytes(11)};
  ended.run.failure = static_cast<Failure>(row.number(5));
  ended.run.started = time_or_none(row.number(6));
  ended.run.ended = from_microseconds(row.number(7));
  ended.run.peak_memory = static_cast<std::uint64_t>(row.number(9));
  ended.run.cpu = Duration{row.number(12)};
  return ended;
}

/// No less than nothing, whatever clocks said.
Duration ran_between(Time from, Time to) {
  if (to <= from) return {};
  const auto ticks = static_cast<std::uint64_t>(to_microseconds(to)) -
                     static_cast<std::uint64_t>(to_microseconds(from));
  constexpr auto kMost = static_cast<std::uint64_t>(Duration::max().count());
  return Duration{static_cast<Duration::rep>(std::min(ticks, kMost))};
}

/// Adds up what ended, and looks up what it belongs to once for neighbours.
class Reader {
 public:
  struct Kinds {
    const RecordRows::KindOf& kind_of;
    std::function<bool(const std::string&)> is_known;
    Time now;
  };
  Reader(sqlite::Connection& db, History& history, Kinds kinds)
      : db_(db), history_(history), kinds_(std::move(kinds)) {}

  /// How many tasks it was.
  std::uint64_t add(const Ended& ended) {
    if (!find_array(ended.array)) return 1;
    const std::string& site = site_of(ended.pilot);
    const std::uint64_t tasks = std::uint64_t{ended.indices.last} - ended.indices.first + 1;
    if (!ended.details.empty()) {
      add_all(ended, site);
      return tasks;
    }
    records::Run run = ended.run;
    run.is_first = ended.attempt <= 1;
    run.tasks = static_cast<double>(tasks);
    add({kind_, site, array_.client, needs_of(ended.sequence, ended.epoch)}, run);
    if (ended.attempt > 1) add_earlier({ended.array, ended.indices.first});
    return tasks;
  }
  const records::Tally& tally() const { return tally_; }

 private:
  bool find_array(ArrayId id) {
    if (id == array_.id) return has_array_;
    sqlite::Statement row =
        db_.query("SELECT client,name,tool,needs,submitted,recipe FROM arrays WHERE id=?");
    array_.id = id;
    has_array_ = row.bind(id.value).step();
    if (!has_array_) return false;
    array_.client = row.text(0);
    array_.name = row.text(1);
    array_.tool = row.text(2);
    // Many ask for the same.
    if (row.bytes(3) != needs_) {
      needs_ = row.text(3);
      array_.needs = decode_needs(needs_);
    }
    array_.submitted = from_microseconds(row.number(4));
    array_.recipe = row.text(5);
    needs_changed_ =
        db_.query("SELECT 1 FROM needs_before WHERE array=? LIMIT 1").bind(id.value).step();
    kind_ = kinds_.kind_of(array_);
    if (!kinds_.is_known(kind_)) kind_ = records::kOtherKinds;
    return true;
  }
  /// Those of an array may have changed while it ran.  Until the next call.
  const Needs& needs_of(std::uint64_t sequence, std::uint64_t epoch) {
    if (!needs_changed_) return array_.needs;
    ResultRow row;
    row.sequence = sequence;
    row.epoch = epoch;
    needs_then_ = history_.needs_then(array_, row);
    return needs_then_;
  }
  const std::string& site_of(const std::string& pilot) {
    const std::string_view name = std::string_view(pilot).substr(0, pilot.find('.'));
    const auto at = sites_.find(name);
    if (at != sites_.end()) return at->second;
    sqlite::Statement row = db_.query("SELECT site FROM allocations WHERE name=?");
    const std::string site = row.bind(name).step() ? row.text(0) : "";
    return sites_.emplace(name, site).first->second;
  }
  /// A node's clock may be wrong, and may have jumped: nothing ran before it was submitted, nor
  /// longer than since then, nor is it still to come.
  void add(const records::Tally::Group& group, records::Run run) {
    run.submitted = std::min(array_.submitted, kinds_.now);
    if (run.started) {
      const Duration ran =
          std::min(ran_between(*run.started, run.ended), kinds_.now - run.submitted);
      run.started = std::clamp(*run.started, run.submitted, kinds_.now - ran);
      run.ended = *run.started + ran;
    }
    run.ended = std::clamp(run.ended, run.submitted, kinds_.now);
    tally_.add(group, run, records::day_of(run.ended));
  }
  void add_all(const Ended& ended, const std::string& site) {
    records::Run run = ended.run;
    std::uint32_t index = ended.indices.first;
    for (const OwnUse& own : use_of(ended.details)) {
      run.started = own.times.started;
      run.ended = own.times.ended;
      run.cpu = own.times.cpu;
      run.peak_memory = own.peak_memory;
      run.read_bytes = own.read_bytes;
      run.written_bytes = own.written_bytes;
      run.staged_in = own.staged_in;
      run.staged_out = own.staged_out;
      run.gpu = own.gpu;
      run.device = own.device;
      run.is_first = own.attempt <= 1;
      add({kind_, site, array_.client, needs_of(ended.sequence, own.epoch)}, run);
      if (own.attempt > 1) add_earlier({ended.array, index});
      ++index;
    }
  }
  /// Damage is for others to find: what is added up beside must not end the engine at each start.
  static std::vector<OwnUse> use_of(std::string_view details) {
    try {
      return decode_use(details);
    } catch (const std::runtime_error&) {
      return {};
    }
  }
  /// What failed before, since it was last retried by hand.
  void add_earlier(TaskId task) {
    sqlite::Statement rows = db_.query(
        "SELECT failure,started,ended,cpu,peak,attempt,pilot,epoch FROM attempts WHERE array=? AND "
        "item=? AND past=0");
    rows.bind(task.array.value, task.index);
    while (rows.step()) {
      records::Run run;
      run.failure = static_cast<Failure>(rows.number(0));
      run.started = time_or_none(rows.number(1));
      run.ended = from_microseconds(rows.number(2));
      run.cpu = Duration{rows.number(3)};
      run.peak_memory = static_cast<std::uint64_t>(rows.number(4));
      run.is_first = rows.number(5) <= 1;
      run.is_last = false;
      const Needs& needs = needs_of(kNoSequence, static_cast<std::uint64_t>(rows.number(7)));
      add({kind_, site_of(rows.text(6)), array_.client, needs}, run);
    }
  }

  // An attempt that was followed by another has an epoch alone.
  static constexpr auto kNoSequence =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  sqlite::Connection& db_;
  History& history_;
  Kinds kinds_;
  ArrayRow array_;
  bool has_array_{false};
  bool needs_changed_{false};
  Needs needs_then_;
  std::string needs_, kind_;
  std::map<std::string, std::string, std::less<>> sites_;  // by allocation
  records::Tally tally_;
};

struct KeptProfile {
  records::Profile profile;
  Time touched{};  ///< up to when it has faded
};

/// A day makes no difference: it stays as it is, and goes on fading from where it was.
KeptProfile faded(KeptProfile kept, Time now) {
  if (now - kept.touched < std::chrono::days{1}) return kept;
  kept.profile.scale(records::weight_after(now - kept.touched));
  return {std::move(kept.profile), now};
}

}  // namespace

void RecordRows::learn_all() {
  // Only a moment's worth is left as a rule.
  while (learn(std::numeric_limits<std::uint64_t>::max())) {
  }
}

bool RecordRows::learn(std::uint64_t tasks, records::Spread* spread) {
  if (!kind_of_) return false;
  std::string cursor = meta_of(db_, kCursor);
  if (cursor.empty()) {
    sqlite::Statement newest = db_.query("SELECT max(sequence) FROM results");
    newest.step();
    cursor = std::to_string(std::max<std::int64_t>(0, newest.number(0) - kOldRowsRead));
  }
  std::map<std::string, bool> known;
  std::optional<std::size_t> kinds;
  const auto is_known = [&](const std::string& kind) {
    const auto at = known.find(kind);
    if (at != known.end()) return at->second;
    const bool is_old = is_known_kind(kind);
    if (!kinds) kinds = count_of_kinds();
    // One is left for all the others.
    const bool admitted = is_old || *kinds + 1 < kMostKinds;
    if (admitted && !is_old) ++*kinds;
    return known.emplace(kind, admitted).first->second;
  };
  const Time now = now_();
  Reader reader(db_, history_, {kind_of_, is_known, now});
  std::uint64_t read = 0, rows_read = 0, last = std::stoull(cursor);
  {
    sqlite::Statement rows = db_.query(
        "SELECT sequence,array,first,last,attempt,failure,started,ended,pilot,peak,epoch,details,"
        "cpu FROM results WHERE sequence>? ORDER BY sequence LIMIT ?");
    rows.bind(last, kRowsAtOnce);
    while (read < tasks && rows.step()) {
      const Ended ended = read_ended(rows);
      last = ended.sequence;
      read += reader.add(ended);
      ++rows_read;
    }
  }
  if (rows_read == 0) return false;
  add(reader.tally(), now);
  if (spread) spread->add(reader.tally().spread());
  db_.query("INSERT OR REPLACE INTO meta VALUES(?,?)").run(kCursor, std::to_string(last));
  return read >= tasks || rows_read == kRowsAtOnce;
}

void RecordRows::skip_all() {
  if (!kind_of_) return;
  db_.query(
         "INSERT OR REPLACE INTO meta SELECT ?,CAST(coalesce(max(sequence),0) AS BLOB) FROM "
         "results")
      .run(kCursor);
}

std::size_t RecordRows::count_of_kinds() {
  sqlite::Statement count = db_.query("SELECT count(*) FROM profiles");
  count.step();
  return static_cast<std::size_t>(count.number(0));
}

bool RecordRows::is_known_kind(const std::string& kind) {
  return db_.query("SELECT 1 FROM profiles WHERE kind=?").bind(kind).step();
}

void RecordRows::add(const records::Tally& tally, Time now) {
  for (const auto& [cell, usage] : tally.usage()) {
    records::Usage sums = usage;
    {
      sqlite::Statement row =
          db_.query("SELECT sums FROM usage WHERE day=? AND kind=? AND site=? AND client=?");
      if (row.bind(cell.day, cell.kind, cell.site, cell.client).step())
        sums += decode_usage(row.bytes(0));
    }
    db_.query("INSERT OR REPLACE INTO usage VALUES(?,?,?,?,?)")
        .run(cell.day, cell.kind, cell.site, cell.client, encode(sums));
  }
  for (const auto& [kind, news] : tally.profiles()) {
    KeptProfile kept{{}, now};
    {
      sqlite::Statement row = db_.query("SELECT touched,bytes FROM profiles WHERE kind=?");
      if (row.bind(kind).step())
        kept = faded({decode_profile(row.bytes(1)), from_microseconds(row.number(0))}, now);
    }
    kept.profile.add(news);
    db_.query("INSERT OR REPLACE INTO profiles VALUES(?,?,?)")
        .run(kind, to_microseconds(kept.touched), encode(kept.profile));
  }
  db_.query("DELETE FROM usage WHERE day<?").run(records::day_of(now) - kDaysKept);
  db_.query("DELETE FROM profiles WHERE touched<?").run(to_microseconds(now - kKindForgotten));
}

std::vector<std::pair<records::Cell, records::Usage>> RecordRows::usage(std::int32_t first,
                                                                        std::int32_t last) {
  std::vector<std::pair<records::Cell, records::Usage>> found;
  sqlite::Statement rows = db_.query("SELECT * FROM usage WHERE day BETWEEN ? AND ?");
  rows.bind(first, last);
  while (rows.step()) {
    found.emplace_back(records::Cell{static_cast<std::int32_t>(rows.number(0)), rows.text(1),
                                     rows.text(2), rows.text(3)},
                       decode_usage(rows.bytes(4)));
  }
  return found;
}

std::vector<std::pair<std::string, records::Profile>> RecordRows::profiles() {
  const Time now = now_ ? now_() : Time{};
  std::vector<std::pair<std::string, records::Profile>> found;
  sqlite::Statement rows = db_.query("SELECT kind,touched,bytes FROM profiles");
  while (rows.step()) {
    KeptProfile kept{decode_profile(rows.bytes(2)), from_microseconds(rows.number(1))};
    found.emplace_back(rows.text(0), faded(std::move(kept), now).profile);
  }
  return found;
}

}  // namespace hpcbatch::store
