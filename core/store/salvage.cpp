#include "store/salvage.hpp"

#include "store/file/damage.hpp"
#include "store/file/page_sums.hpp"
#include "store/file/sqlite.hpp"
#include "store/file/table_copy.hpp"
#include "store/hold_back.hpp"
#include "store/layout.hpp"
#include "store/put_together.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

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
  has_sums = (found.mark && found.mark->has_sums) ||
             (found.first_page.size() > 20 && found.first_page[20] == static_cast<char>(kSumSize));
}

void add_rows(sqlite::Connection& connection, StoreReport& report) {
  for (const char* table : kTables) {
    sqlite::Statement count =
        connection.query((std::string("SELECT count(*) FROM ") + table).c_str());
    count.step();
    report.rows.emplace_back(table, static_cast<std::uint64_t>(count.number(0)));
  }
}

StoreReport looked_through(const std::string& file, const std::string& work, bool& has_sums) {
  if (!fs::exists(file) && !fs::exists(file + "-wal"))
    throw std::runtime_error(file + " is not there");
  StoreReport report;
  add_faults_of_files(file, report, has_sums);
  put_together(file, work, has_sums, report);
  sqlite::Connection connection(work);
  if (has_sums) set_sums(connection.handle(), Sums::Always);
  if (const std::string found = connection.quick_check(); !found.empty())
    report.faults.push_back(found);
  if (report.is_good()) add_rows(connection, report);
  return report;
}

/// Older programs made none of some.
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
                StoreReport& report) {
  fresh.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL");
  sqlite::Transaction transaction(fresh);
  for (const char* table : kTables) {
    if (!copy_rows(old, fresh, table))
      report.faults.push_back(fmt::format("not all of '{}' can be read", table));
  }
  // Without them needs of long ago are shown as those of now, reports are short, and what tasks said
  // of themselves is not shown: no fault that holds tasks back.
  for (const char* table : {"needs_before", "metrics", "allocation_terms", "usage", "profiles"}) {
    if (has_table(old, table)) copy_rows(old, fresh, table);
  }
  if (!report.is_good()) hold_back(fresh, has_items, report);
  add_rows(fresh, report);
  transaction.commit();
  fresh.execute("PRAGMA journal_mode=DELETE");
}

Error not_done(const std::string& text) {
  return {Error::Kind::Rejected, text};
}

}  // namespace

Result<StoreReport> look_through(const std::string& file, const std::string& folder) {
  try {
    const OwnFolder work(folder + "/hpcbatch-fsck-");
    bool has_sums = false;
    return looked_through(file, work.path + "/old.db", has_sums);
  } catch (const std::exception& e) {
    return not_done(fmt::format("cannot look through {}: {}", file, e.what()));
  }
}

Result<StoreReport> salvage(const std::string& file, const std::string& into,
                            const HasItems& has_items) {
  if (fs::exists(into) || fs::is_symlink(into))
    return not_done(into + " is there already; name a new file");
  try {
    const OwnFolder work(into + ".");
    const std::string old = work.path + "/old.db", fresh = work.path + "/new.db";
    bool has_sums = false;
    StoreReport report = looked_through(file, old, has_sums);
    report.rows.clear();
    {
      auto made = Store::open(fresh);
      if (!made) return made.error();
    }
    {
      sqlite::Connection from(old), to(fresh);
      if (has_sums) set_sums(from.handle(), Sums::Always);
      bring_up_to_date(from);
      write_anew(from, to, has_items, report);
    }
    auto checked = sqlite::Connection(fresh).quick_check();
    if (!checked.empty()) return not_done("what was written is not good: " + checked);
    fs::permissions(fresh, fs::perms::owner_read | fs::perms::owner_write);
    fs::rename(fresh, into);
    return report;
  } catch (const std::exception& e) {
    return not_done(fmt::format("cannot salvage {}: {}", file, e.what()));
  }
}

}  // namespace hpcbatch::store
