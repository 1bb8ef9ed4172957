#include "store/salvage.hpp"

#include "store/encoding.hpp"
#include "store/file/mark.hpp"
#include "store/file/page_sums.hpp"
#include "store/file/sqlite.hpp"
#include "store/file/table_copy.hpp"
#include "store/layout.hpp"
#include "store/put_together.hpp"
#include "store/store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <stdlib.h>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTables[] = {"meta",     "environments", "arrays", "dependencies", "items",
                                   "attempts", "results",      "leases", "allocations"};

/// Of a name that nobody could foresee, for us alone; gone with this.
struct OwnFolder {
  explicit OwnFolder(const std::string& beginning) : path(beginning + "XXXXXX") {
    if (::mkdtemp(path.data()) == nullptr)
      throw std::runtime_error(
          fmt::format("cannot make a folder {}: {}", path, std::strerror(errno)));
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

void add_faults_of_files(const std::string& file, StoreReport& report, bool& has_sums) {
  FoundFiles found{.boot = boot_of_machine()};
  std::ifstream in(file, std::ios::binary);
  found.first_page.resize(kPageSize);
  in.read(found.first_page.data(), static_cast<std::streamsize>(kPageSize));
  found.first_page.resize(static_cast<std::size_t>(in.gcount()));
  found.has_database = !found.first_page.empty();
  found.log = state_of_log(read_whole(file + "-wal"));
  const std::string mark = read_whole(file + "-mark");
  found.has_mark = !mark.empty();
  found.mark = parse_mark(mark);
  if (found.has_mark && !found.mark) report.faults.push_back(file + "-mark cannot be read");
  if (auto why = damage_of(found)) report.faults.push_back(*why);
  has_sums = (found.mark && found.mark->has_sums) || leaves_room_for_sums(found.first_page);
}

void add_rows(sqlite::Connection& connection, StoreReport& report) {
  for (const char* table : kTables) {
    sqlite::Statement count =
        connection.query((std::string("SELECT count(*) FROM ") + table).c_str());
    count.step();
    report.rows.emplace_back(table, static_cast<std::uint64_t>(count.number(0)));
  }
}

/// What is shown of tasks and expected of them; without it none is held back.
constexpr const char* kStatistics[] = {"needs_before", "metrics",          "submitted_within",
                                       "numbered",     "allocation_terms", "usage",
                                       "profiles",     "notices"};

bool is_of_statistics(const std::string& table) {
  return std::find(std::begin(kStatistics), std::end(kStatistics), table) != std::end(kStatistics);
}

enum class Tables : std::uint8_t { All, AllButStatistics };

/// SQLite's own check knows of no table what it should be: a column whose name has changed is as good
/// to it as any.  What an older program made is brought up to date first, for the look alone; of
/// what a later one made nobody knows here what it should be.
void add_faults_of_layout(sqlite::Connection& db, Tables which, StoreReport& report) {
  sqlite::Connection made(":memory:");
  make_tables(made);
  take_over(made);
  const sqlite::Transaction for_the_look(db);
  if (!is_known(db)) return;
  take_over(db);
  sqlite::Statement tables = made.query("SELECT name FROM sqlite_master WHERE type='table'");
  while (tables.step()) {
    const std::string table = tables.text(0);
    if (which == Tables::AllButStatistics && is_of_statistics(table)) continue;
    const std::vector<std::string> missed =
        not_among(columns_of(made, table), columns_of(db, table));
    if (!missed.empty())
      report.faults.push_back(
          fmt::format("the description of the table '{}' is damaged: it has no {}", table,
                      fmt::join(missed, ", ")));
  }
}

StoreReport looked_through(const std::string& file, const std::string& work, Tables which,
                           bool& has_sums, const SalvageSaid& said) {
  if (!fs::exists(file) && !fs::exists(file + "-wal"))
    throw std::runtime_error(file + " is not there");
  StoreReport report;
  add_faults_of_files(file, report, has_sums);
  put_together(file, work, has_sums, report, said);
  sqlite::Connection connection(work);
  if (has_sums) set_sums(connection.handle(), Sums::Always);
  const auto go_on = [&said] {
    if (said) said("looks at all pages together", 0, 0);
    return true;
  };
  if (const std::string found = connection.quick_check(go_on); !found.empty())
    report.faults.push_back(found);
  if (report.is_good()) add_faults_of_layout(connection, which, report);
  if (report.is_good()) add_rows(connection, report);
  return report;
}

/// What older programs did not make is there by now, if the tables' description can be read.
bool has_table(sqlite::Connection& connection, const char* table) {
  try {
    return connection.query("SELECT 1 FROM sqlite_master WHERE name=CAST(? AS TEXT)")
        .bind(table)
        .step();
  } catch (const sqlite::SqlError& e) {
    if (!e.damaged()) throw;
    return false;
  }
}

/// What cannot be read of the tables' description stays as it is.
void bring_up_to_date(sqlite::Connection& old) {
  try {
    sqlite::Transaction transaction(old);
    take_over(old);
    transaction.commit();
  } catch (const sqlite::SqlError& e) {
    if (!e.damaged()) throw;
  }
}

void write_anew(sqlite::Connection& old, sqlite::Connection& fresh, const HasItems& has_items,
                std::uint64_t highest, const SalvageSaid& said, StoreReport& report) {
  fresh.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL");
  sqlite::Transaction transaction(fresh);
  for (const char* table : kTables) {
    if (!copy_rows(old, fresh, table, said))
      report.faults.push_back(fmt::format("not all of '{}' can be read", table));
  }
  // What nobody is known to wait for goes on.
  if (has_table(old, "readers")) (void)copy_rows(old, fresh, "readers", said);
  // Without them needs of long ago are shown as those of now, reports are short, and what tasks said
  // of themselves and which task submitted others is not shown: no fault that holds tasks back.
  std::string lost;
  for (const char* table : kStatistics) {
    if (!has_table(old, table) || !copy_rows(old, fresh, table, said))
      lost += (lost.empty() ? "" : ", ") + std::string(table);
  }
  add_rows(fresh, report);
  if (!report.is_good()) {
    name_missing(fresh, highest, report);
    hold_back(fresh, has_items, report);
  }
  if (!lost.empty())
    report.faults.push_back(fmt::format(
        "statistics are lost, at least a part of them ({}): `hpcbatch report` and what is "
        "expected of tasks begin anew there",
        lost));
  transaction.commit();
  fresh.execute("PRAGMA journal_mode=DELETE");
}

bool has_nothing(const StoreReport& report) {
  return std::all_of(report.rows.begin(), report.rows.end(),
                     [](const auto& table) { return table.first == "meta" || table.second == 0; });
}

Error not_done(const std::string& text) {
  return {Error::Kind::Rejected, text};
}

}  // namespace

Result<StoreReport> look_through(const std::string& file, const std::string& folder,
                                 const SalvageSaid& said) {
  try {
    const OwnFolder work(folder + "/hpcbatch-fsck-");
    bool has_sums = false;
    return looked_through(file, work.path + "/old.db", Tables::All, has_sums, said);
  } catch (const std::exception& e) {
    return not_done(fmt::format("cannot look through {}: {}", file, e.what()));
  }
}

Result<StoreReport> salvage(const std::string& file, const std::string& into,
                            const HasItems& has_items, const SalvageSaid& said) {
  if (fs::exists(into) || fs::is_symlink(into))
    return not_done(into + " is there already; name a new file");
  try {
    const OwnFolder work(into + ".");
    const std::string old = work.path + "/old.db", fresh = work.path + "/new.db";
    bool has_sums = false;
    StoreReport report = looked_through(file, old, Tables::AllButStatistics, has_sums, said);
    report.rows.clear();
    {
      auto made = Store::open(fresh);
      if (!made) return made.error();
    }
    {
      sqlite::Connection from(old), to(fresh);
      if (has_sums) set_sums(from.handle(), Sums::Always);
      bring_up_to_date(from);
      const auto mark = parse_mark(read_whole(file + "-mark"));
      write_anew(from, to, has_items, mark ? mark->highest : 0, said, report);
    }
    if (!report.is_good() && has_nothing(report))
      return not_done(fmt::format("nothing of {} can be read: {}", file, report.faults.front()));
    auto checked = sqlite::Connection(fresh).quick_check();
    if (!checked.empty()) return not_done("what was written is not good: " + checked);
    fs::permissions(fresh, fs::perms::owner_read | fs::perms::owner_write);
    fs::rename(fresh, into);
    return report;
  } catch (const std::exception& e) {
    return not_done(fmt::format("cannot salvage {}: {}", file, e.what()));
  }
}

namespace {

constexpr std::size_t kNamed = 20;

std::vector<std::int64_t> without_environment(sqlite::Connection& saved) {
  std::vector<std::int64_t> ids;
  sqlite::Statement rows = saved.query(
      "SELECT id FROM arrays WHERE environment<>0 AND environment NOT IN "
      "(SELECT id FROM environments)");
  while (rows.step()) ids.push_back(rows.number(0));
  return ids;
}

std::vector<std::int64_t> without_items(sqlite::Connection& saved, const HasItems& has_items) {
  std::vector<std::int64_t> ids;
  sqlite::Statement arrays = saved.query("SELECT id,indices,recipe FROM arrays");
  while (arrays.step()) {
    if (!has_items(arrays.text(2))) continue;
    sqlite::Statement items = saved.query("SELECT count(*) FROM items WHERE array=?");
    items.bind(arrays.number(0)).step();
    if (static_cast<std::uint64_t>(items.number(0)) < decode_indices(arrays.bytes(1)).size())
      ids.push_back(arrays.number(0));
  }
  return ids;
}

void leave_out(sqlite::Connection& saved, const std::vector<std::int64_t>& ids, const char* what,
               StoreReport& report) {
  if (ids.empty()) return;
  std::string named;
  for (std::size_t i = 0; i < ids.size() && i < kNamed; ++i)
    named += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i]);
  if (ids.size() > kNamed) named += fmt::format(" and {} more", ids.size() - kNamed);
  report.faults.push_back(
      fmt::format("left out, because {} cannot be read: {}; submit again", what, named));
  for (const std::int64_t id : ids) saved.query("DELETE FROM arrays WHERE id=?").run(id);
}

std::uint64_t number_of(sqlite::Connection& saved, const char* query) {
  sqlite::Statement row = saved.query(query);
  return row.step() ? static_cast<std::uint64_t>(row.number(0)) : 0;
}

std::uint64_t highest_pruned(sqlite::Connection& saved) {
  return number_of(saved,
                   "SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM meta WHERE "
                   "key=CAST('pruned_array' AS BLOB)");
}

std::uint64_t highest_named(sqlite::Connection& saved) {
  std::uint64_t highest = highest_pruned(saved);
  for (const char* query :
       {"SELECT max(id) FROM arrays", "SELECT max(array+ids-1) FROM numbered",
        "SELECT max(array) FROM results", "SELECT max(array) FROM items",
        "SELECT max(array) FROM attempts", "SELECT max(array) FROM leases",
        "SELECT max(array) FROM dependencies", "SELECT max(on_array) FROM dependencies"})
    highest = std::max(highest, number_of(saved, query));
  return highest;
}

/// Also of those that lay on a bad page.  No number of theirs is given again.
void forget_what_is_gone(sqlite::Connection& saved) {
  saved.query("INSERT OR REPLACE INTO meta VALUES(CAST('pruned_array' AS BLOB),?)")
      .run(std::to_string(highest_named(saved)));
  for (const char* table : {"items", "attempts", "leases", "dependencies", "numbered"})
    saved.execute(fmt::format("DELETE FROM {} WHERE array NOT IN (SELECT id FROM arrays)", table));
  saved.execute(
      "WITH used AS (SELECT environment, count(*) AS arrays FROM arrays GROUP BY environment) "
      "UPDATE environments SET arrays=coalesce((SELECT used.arrays FROM used WHERE "
      "used.environment=environments.id),0)");
}

}  // namespace

void name_missing(sqlite::Connection& saved, std::uint64_t highest, StoreReport& report) {
  highest = std::max(highest, highest_named(saved));
  std::string named;
  std::uint64_t ranges = 0, next = highest_pruned(saved) + 1;
  const auto gap = [&](std::uint64_t last) {
    if (next > last || ++ranges > kNamed) return;
    named += fmt::format("{}{}{}", ranges == 1 ? "" : ", ", next,
                         next == last ? "" : fmt::format("-{}", last));
  };
  sqlite::Statement rows = saved.query("SELECT id FROM arrays WHERE id>=? ORDER BY id");
  rows.bind(next);
  while (rows.step()) {
    const auto id = static_cast<std::uint64_t>(rows.number(0));
    gap(id - 1);
    next = last_id_of(saved, id) + 1;
  }
  gap(highest);
  if (ranges == 0) return;
  if (ranges > kNamed) named += fmt::format(" and {} more ranges", ranges - kNamed);
  report.faults.push_back("these submissions are missing: " + named);
}

void hold_back(sqlite::Connection& saved, const HasItems& has_items, StoreReport& report) {
  leave_out(saved, without_environment(saved), "their environment", report);
  leave_out(saved, without_items(saved, has_items), "the texts of their tasks", report);
  forget_what_is_gone(saved);
  saved.execute("UPDATE arrays SET held=indices WHERE ended=0");
  sqlite::Statement held = saved.query("SELECT count(*) FROM arrays WHERE ended=0");
  held.step();
  if (held.number(0) == 0) return;
  report.faults.push_back(fmt::format(
      "{} arrays that had not ended are held: results of theirs, or what they wait for, may be "
      "missing. Look at them with `hpcbatch list`; `hpcbatch release` lets them run",
      held.number(0)));
}

}  // namespace hpcbatch::store
