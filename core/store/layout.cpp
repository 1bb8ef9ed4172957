#include "store/layout.hpp"

#include "store/lease_rows.hpp"
#include "store/record_rows.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace hpcbatch::store {
namespace {

// Its pages end with sums, which a program that knows 5 would not renew.
constexpr const char* kVersionWithSums = "6";
constexpr const char* kVersionWithoutSums = "5";
constexpr const char* kVersionWithoutEnds = "4";

constexpr const char* kLayout = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE environments(id INTEGER PRIMARY KEY AUTOINCREMENT, hash INTEGER NOT NULL, arrays INTEGER NOT NULL,
  bytes BLOB NOT NULL);
CREATE INDEX environments_by_hash ON environments(hash);
CREATE TABLE arrays(id INTEGER PRIMARY KEY, client BLOB, key BLOB, content INTEGER, name BLOB, tool BLOB, indices BLOB,
  needs BLOB, priority INTEGER, retries INTEGER, max_running INTEGER, streams_input INTEGER, held BLOB, after BLOB,
  submitted INTEGER, ended INTEGER, recipe BLOB, environment INTEGER, give_up_at INTEGER, gives_up_running INTEGER);
CREATE INDEX live_arrays ON arrays(id) WHERE ended = 0;
CREATE INDEX waiting_arrays ON arrays(id) WHERE ended = 0 AND after <> x'';
CREATE INDEX ended_arrays ON arrays(ended) WHERE ended <> 0;
CREATE INDEX keyed_arrays ON arrays(client, key) WHERE key <> x'';
CREATE TABLE dependencies(on_array INTEGER, array INTEGER, PRIMARY KEY(on_array, array)) WITHOUT ROWID;
CREATE INDEX dependencies_of_array ON dependencies(array);
CREATE TABLE items(array INTEGER, item INTEGER, text BLOB, PRIMARY KEY(array, item)) WITHOUT ROWID;
CREATE TABLE attempts(array INTEGER, item INTEGER, attempt INTEGER, epoch INTEGER, failure INTEGER, message BLOB,
  pilot BLOB, node BLOB, charged INTEGER, unexplained INTEGER, started INTEGER, ended INTEGER, past INTEGER,
  exit_code INTEGER, signal INTEGER, peak INTEGER, cpu INTEGER, log BLOB, last_out INTEGER, last_err INTEGER,
  out_bytes INTEGER, err_bytes INTEGER, truncated INTEGER,
  PRIMARY KEY(array, item, attempt, epoch)) WITHOUT ROWID;
CREATE TABLE results(sequence INTEGER PRIMARY KEY AUTOINCREMENT, array INTEGER, first INTEGER, last INTEGER,
  attempt INTEGER, failure INTEGER, exit_code INTEGER, signal INTEGER, message BLOB, started INTEGER, ended INTEGER,
  pilot BLOB, node BLOB, peak INTEGER, cpu INTEGER, log BLOB, last_out INTEGER, last_err INTEGER, out_bytes INTEGER,
  err_bytes INTEGER, truncated INTEGER, epoch INTEGER, details BLOB);
CREATE INDEX results_of_array ON results(array, first);
CREATE TABLE allocations(name TEXT PRIMARY KEY, site BLOB, shape BLOB, state INTEGER, number BLOB, opened INTEGER,
  running_since INTEGER, ended INTEGER, cause INTEGER, reason BLOB, cancel_asked INTEGER, pilots_seen INTEGER);
CREATE INDEX allocations_by_age ON allocations(opened);
)";

/// What earlier attempts ended with and had printed was not kept; -1: that exit code is not known.
constexpr const char* kEnds = R"(
ALTER TABLE attempts ADD COLUMN exit_code INTEGER DEFAULT -1;
ALTER TABLE attempts ADD COLUMN signal INTEGER DEFAULT 0;
ALTER TABLE attempts ADD COLUMN peak INTEGER DEFAULT 0;
ALTER TABLE attempts ADD COLUMN cpu INTEGER DEFAULT 0;
ALTER TABLE attempts ADD COLUMN log BLOB DEFAULT x'';
ALTER TABLE attempts ADD COLUMN last_out INTEGER DEFAULT 0;
ALTER TABLE attempts ADD COLUMN last_err INTEGER DEFAULT 0;
ALTER TABLE attempts ADD COLUMN out_bytes INTEGER DEFAULT 0;
ALTER TABLE attempts ADD COLUMN err_bytes INTEGER DEFAULT 0;
ALTER TABLE attempts ADD COLUMN truncated INTEGER DEFAULT 0;
)";

constexpr const char* kGivingUp = R"(
ALTER TABLE arrays ADD COLUMN give_up_at INTEGER DEFAULT 0;
ALTER TABLE arrays ADD COLUMN gives_up_running INTEGER DEFAULT 0;
)";

// Tables that older programs pass over.
// readers: who waits for what an array comes to, and how long that may be away.
// needs_before: what an array needed before a change; of the results numbered up to `until`, and of
//   the leases with epochs up to `leased`.
// allocation_terms: what allocations that have not ended were asked for.
// submitted_within: the task whose command submitted an array.
// numbered: how many ids an array has taken, where that is more than one.
// notices: who is to be told when the arrays from first to last have ended.
// metrics: what tasks say of themselves, of the attempt that said it.
constexpr const char* kPassedOver = R"(
CREATE TABLE IF NOT EXISTS readers(array INTEGER PRIMARY KEY, reader BLOB, lease INTEGER);
CREATE TABLE IF NOT EXISTS needs_before(array INTEGER, until INTEGER, leased INTEGER, needs BLOB,
  PRIMARY KEY(array, until, leased)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS allocation_terms(name TEXT PRIMARY KEY, terms BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS submitted_within(array INTEGER PRIMARY KEY, task INTEGER, item INTEGER);
CREATE TABLE IF NOT EXISTS numbered(array INTEGER PRIMARY KEY, ids INTEGER);
CREATE TABLE IF NOT EXISTS notices(first INTEGER, last INTEGER, target BLOB, PRIMARY KEY(first, target)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metrics(array,item,epoch,ended,json,PRIMARY KEY(array,item))WITHOUT ROWID;
)";

std::string version_of(sqlite::Connection& db) {
  sqlite::Statement row = db.query("SELECT value FROM meta WHERE key=CAST('version' AS BLOB)");
  return row.step() ? row.text(0) : "";
}

void set_version(sqlite::Connection& db, const char* version) {
  db.query("INSERT OR REPLACE INTO meta VALUES(CAST('version' AS BLOB),?)").run(version);
}

}  // namespace

void make_tables(sqlite::Connection& db) {
  db.execute(kLayout);
  db.execute(LeaseRows::kLayout);
  set_version(db, kLayoutVersion);
}

bool is_known(sqlite::Connection& db) {
  const std::string version = version_of(db);
  return version == kVersionWithoutEnds || version == kVersionWithoutSums ||
         version == kVersionWithSums || version == kLayoutVersion;
}

void take_over(sqlite::Connection& db) {
  if (version_of(db) == kVersionWithoutEnds) {
    db.execute(kEnds);
    set_version(db, kVersionWithoutSums);
  }
  if (version_of(db) == kVersionWithoutSums) set_version(db, kVersionWithSums);
  if (version_of(db) == kVersionWithSums) {
    db.execute(kGivingUp);
    set_version(db, kLayoutVersion);
  }
  if (const std::string version = version_of(db); version != kLayoutVersion) {
    throw std::runtime_error(fmt::format(
        "the store has version {}, this program knows version {} only", version, kLayoutVersion));
  }
  db.execute(kPassedOver);
  db.execute(RecordRows::kLayout);
}

void add_indexes(sqlite::Connection& db) {
  db.execute(
      "CREATE INDEX IF NOT EXISTS arrays_that_give_up ON arrays(id) "
      "WHERE ended = 0 AND give_up_at <> 0");
}

std::string meta_of(sqlite::Connection& db, const char* key) {
  sqlite::Statement row = db.query("SELECT value FROM meta WHERE key=?");
  return row.bind(key).step() ? row.text(0) : "";
}

std::uint64_t last_id_of(sqlite::Connection& db, std::uint64_t array) {
  sqlite::Statement row = db.query("SELECT ids FROM numbered WHERE array=?");
  return row.bind(array).step() ? array + static_cast<std::uint64_t>(row.number(0)) - 1 : array;
}

std::uint64_t highest_id(sqlite::Connection& db) {
  sqlite::Statement row = db.query("SELECT max(id) FROM arrays");
  if (!row.step()) return 0;
  return last_id_of(db, static_cast<std::uint64_t>(row.number(0)));
}

}  // namespace hpcbatch::store
