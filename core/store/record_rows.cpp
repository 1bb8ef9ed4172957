#include "store/record_rows.hpp"

#include "records/kind.hpp"
#include "store/encoding.hpp"
#include "store/layout.hpp"
#include "store/result_run.hpp"
#include "store/store.pb.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

namespace hpcbatch::store {
namespace {

constexpr const char* kCursor = "learned";
// Of a store that was there before anything was learned, no more is read.
constexpr std::int64_t kOldRowsRead = 200'000;
constexpr int kRowsAtOnce = 5'000;
constexpr std::int32_t kDaysKept = 400;
constexpr std::chrono::days kKindForgotten{60};
// Counts are kept in sixteenths: what counts less is gone.
constexpr float kParts = 16;

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

std::string encode(const records::Profile& profile) {
  KindProfile message;
  put(*message.mutable_run(), profile.run);
  put(*message.mutable_memory(), profile.memory);
  put(*message.mutable_cpus(), profile.cpus);
  put(*message.mutable_wait(), profile.wait);
  message.set_cpus_asked(profile.cpus_asked);
  message.set_memory_asked(profile.memory_asked);
  message.set_time_asked(profile.time_asked);
  return message.SerializeAsString();
}

/// What cannot be read is learned anew.
records::Profile decode_profile(std::string_view bytes) {
  KindProfile message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  records::Profile profile{sketch_of(message.run()), sketch_of(message.memory()),
                           sketch_of(message.cpus()), sketch_of(message.wait())};
  profile.cpus_asked = message.cpus_asked();
  profile.memory_asked = message.memory_asked();
  profile.time_asked = message.time_asked();
  return profile;
}

std::string encode(const records::Usage& usage) {
  UsageSums message;
  for (const double sum :
       {usage.runs, usage.done, usage.cancelled, usage.never_ran, usage.attempts, usage.wait,
        usage.run, usage.lost, usage.cpu_used, usage.cpu_asked, usage.memory_used,
        usage.memory_asked, usage.time_used, usage.time_asked, usage.gpu_asked})
    message.add_sum(sum);
  return message.SerializeAsString();
}

/// What cannot be read counts as nothing.
records::Usage decode_usage(std::string_view bytes) {
  records::Usage u;
  UsageSums message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return u;
  int at = 0;
  for (double* sum : {&u.runs, &u.done, &u.cancelled, &u.never_ran, &u.attempts, &u.wait, &u.run,
                      &u.lost, &u.cpu_used, &u.cpu_asked, &u.memory_used, &u.memory_asked,
                      &u.time_used, &u.time_asked, &u.gpu_asked}) {
    // One that was written by an older program has fewer.
    if (at < message.sum_size()) *sum = message.sum(at);
    ++at;
  }
  return u;
}

records::Profile aged(records::Profile profile, Time touched, Time now) {
  // A day makes no difference.
  if (now - touched >= std::chrono::days{1}) profile.scale(records::weight_after(now - touched));
  return profile;
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
    std::optional<Needs> then;
    if (ended.attempt > 1) then = history_.needs_then(array_, result_of(ended));
    const records::Tally::Group group{kind_, site, array_.client, then ? *then : array_.needs};
    records::Run run = ended.run;
    run.submitted = array_.submitted;
    const std::uint64_t tasks = std::uint64_t{ended.indices.last} - ended.indices.first + 1;
    if (!ended.details.empty()) {
      add_all(ended.details, group, run);
    } else {
      run.is_first = ended.attempt <= 1;
      run.tasks = static_cast<double>(tasks);
      add(group, run);
      if (ended.attempt > 1) add_earlier({ended.array, ended.indices.first}, group);
    }
    return tasks;
  }
  const records::Tally& tally() const { return tally_; }

 private:
  static ResultRow result_of(const Ended& ended) {
    ResultRow row;
    row.sequence = ended.sequence;
    row.epoch = ended.epoch;
    return row;
  }
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
    kind_ = kinds_.kind_of(array_);
    if (!kinds_.is_known(kind_)) kind_ = records::kOtherKinds;
    return true;
  }
  /// A node's clock may be wrong, and may have jumped: nothing ran before it was submitted, nor
  /// longer than since then.
  void add(const records::Tally::Group& group, records::Run run) {
    const Time begin = std::min(array_.submitted, kinds_.now);
    const Time ended = std::clamp(run.ended, begin, kinds_.now);
    if (run.started && run.ended - *run.started > kinds_.now - begin)
      run.ended = *run.started + (kinds_.now - begin);
    tally_.add(group, run, records::day_of(ended));
  }
  const std::string& site_of(const std::string& pilot) {
    const std::string_view name = std::string_view(pilot).substr(0, pilot.find('.'));
    const auto at = sites_.find(name);
    if (at != sites_.end()) return at->second;
    sqlite::Statement row = db_.query("SELECT site FROM allocations WHERE name=?");
    const std::string site = row.bind(name).step() ? row.text(0) : "";
    return sites_.emplace(name, site).first->second;
  }
  void add_all(std::string_view details, const records::Tally::Group& group, records::Run run) {
    for (const OwnUse& own : decode_use(details)) {
      run.started = own.times.started;
      run.ended = own.times.ended;
      run.cpu = own.times.cpu;
      run.peak_memory = own.peak_memory;
      run.is_first = own.attempt <= 1;
      add(group, run);
    }
  }
  /// What failed before, since it was last retried by hand.
  void add_earlier(TaskId task, const records::Tally::Group& group) {
    sqlite::Statement rows = db_.query(
        "SELECT failure,started,ended,cpu,peak,attempt,pilot FROM attempts WHERE array=? AND "
        "item=? AND past=0");
    rows.bind(task.array.value, task.index);
    while (rows.step()) {
      records::Run run;
      run.failure = static_cast<Failure>(rows.number(0));
      run.started = time_or_none(rows.number(1));
      run.ended = from_microseconds(rows.number(2));
      run.cpu = Duration{rows.number(3)};
      run.peak_memory = static_cast<std::uint64_t>(rows.number(4));
      run.submitted = array_.submitted;
      run.is_first = rows.number(5) <= 1;
      run.is_last = false;
      add({group.kind, site_of(rows.text(6)), group.client, group.needs}, run);
    }
  }

  sqlite::Connection& db_;
  History& history_;
  Kinds kinds_;
  ArrayRow array_;
  bool has_array_{false};
  std::string needs_, kind_;
  std::map<std::string, std::string, std::less<>> sites_;  // by allocation
  records::Tally tally_;
};

}  // namespace

void RecordRows::learn_all() {
  // Only a moment's worth is left as a rule.
  while (learn(now_, std::numeric_limits<std::uint64_t>::max())) {
  }
}

bool RecordRows::learn(Time now, std::uint64_t tasks) {
  if (!kind_of_ || now == Time{}) return false;
  now_ = now;
  std::string cursor = meta_of(db_, kCursor);
  if (cursor.empty()) {
    sqlite::Statement newest = db_.query("SELECT max(sequence) FROM results");
    newest.step();
    cursor = std::to_string(std::max<std::int64_t>(0, newest.number(0) - kOldRowsRead));
  }
  std::map<std::string, bool> known;
  std::size_t kinds = 0;
  {
    sqlite::Statement count = db_.query("SELECT count(*) FROM profiles");
    count.step();
    kinds = static_cast<std::size_t>(count.number(0));
  }
  const auto is_known = [&](const std::string& kind) {
    const auto at = known.find(kind);
    if (at != known.end()) return at->second;
    const bool has_room = is_known_kind(kind);
    // One is left for all the others.
    const bool admitted = has_room || kinds + 1 < kMostKinds;
    if (admitted && !has_room) ++kinds;
    return known.emplace(kind, admitted).first->second;
  };
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
  db_.query("INSERT OR REPLACE INTO meta VALUES(?,?)").run(kCursor, std::to_string(last));
  return read >= tasks || rows_read == kRowsAtOnce;
}

void RecordRows::skip_all() {
  if (!kind_of_ || now_ == Time{}) return;
  db_.query(
         "INSERT OR REPLACE INTO meta SELECT ?,CAST(coalesce(max(sequence),0) AS BLOB) FROM "
         "results")
      .run(kCursor);
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
    records::Profile profile;
    {
      sqlite::Statement row = db_.query("SELECT touched,bytes FROM profiles WHERE kind=?");
      if (row.bind(kind).step())
        profile = aged(decode_profile(row.bytes(1)), from_microseconds(row.number(0)), now);
    }
    profile.add(news);
    db_.query("INSERT OR REPLACE INTO profiles VALUES(?,?,?)")
        .run(kind, to_microseconds(now), encode(profile));
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

std::vector<std::pair<std::string, records::Profile>> RecordRows::profiles(Time now) {
  std::vector<std::pair<std::string, records::Profile>> found;
  sqlite::Statement rows = db_.query("SELECT kind,touched,bytes FROM profiles");
  while (rows.step()) {
    found.emplace_back(rows.text(0),
                       aged(decode_profile(rows.bytes(2)), from_microseconds(rows.number(1)), now));
  }
  return found;
}

}  // namespace hpcbatch::store
