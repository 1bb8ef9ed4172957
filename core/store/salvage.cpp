#include "store/salvage.hpp"

#include "store/encoding.hpp"
#include "store/file/log_file.hpp"
#include "store/file/mark.hpp"
#include "store/file/page_sums.hpp"
#include "store/file/sqlite.hpp"
#include "store/file/table_copy.hpp"
#include "store/layout.hpp"
#include "store/store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlocksNamed = 20;
constexpr std::uint64_t kPagesBetweenWords = 4096;

constexpr std::uint32_t kMostPages = 1U << 30;

/// A database grows by pages that are written; what was free when it grew need not have been. A
/// count beyond that is damage, and to believe it would fill the disk.
std::uint64_t most_pages(std::uint64_t lie_there, std::uint64_t in_the_log) {
  return 2 * (lie_there + in_the_log) + 4096;
}

std::uint64_t pages_in(const std::string& file) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(file, none);
  return none ? 0 : (size + kPageSize - 1) / kPageSize;
}

/// The newest of each page that finished commits of the log hold.  A frame whose sum is wrong is
/// known by what follows it; behind frames whose heads cannot be read the log goes on with the first
/// whose own sum the next one goes on from.
class Log {
 public:
  Log(std::string_view bytes, const std::optional<MarkText>& mark, std::uint64_t lie_there,
      StoreReport& report)
      : log_(bytes), report_(report), most_(most_pages(lie_there, log_.frames())) {
    if (log_.frames() == 0) return;
    salts_ = log_.has_header() ? log_.salts() : salts_of_frames();
    if (mark && mark->salts == salts_ && mark->written <= log_.frames()) mark_ = mark;
    find_end();
    read();
  }
  std::map<std::uint32_t, std::string> pages;
  std::uint32_t database_pages{0};
  std::uint64_t most() const { return most_; }

 private:
  /// As it stands, or as it was put right.
  struct Block {
    LogFrame frame;
    std::string body;
    bool has_head{false};
    bool good{false};
    bool is_fault{false};  ///< what goes on behind a gap is no fault of its own
  };
  static bool is_page(std::uint32_t number) { return number != 0 && number <= kMostPages; }

  Salts salts_of_frames() const {
    for (std::size_t at = 1; at < log_.frames(); ++at) {
      const LogFrame frame = log_.frame(at);
      if (frame.page != 0 && frame.sum == log_.sum_behind(log_.frame(at - 1).sum, at))
        return frame.salts;
    }
    return log_.frame(0).salts;
  }
  /// Old frames behind the end of this log have other salts, and sums that do not fit it.
  void find_end() {
    for (end_ = log_.frames(); end_ > 1 && !is_certain(end_ - 1) && !goes_on_at(end_ - 1);) --end_;
  }
  void read() {
    std::optional<Sum> before;  // what the next frame's sum goes on from, where that is known
    if (log_.has_header() || log_.frame(0).sum == log_.sum_behind(log_.seed(), 0))
      before = log_.seed();
    for (std::size_t at = 0; at < log_.frames(); ++at) {
      Block block = block_at(at, before);
      if (!block.good && at >= end_) break;  // the torn end
      if (block.is_fault) tell(at, block);
      if (block.good || block.has_head) keep(std::move(block));
    }
  }
  /// `before`: what its sum goes on from, where that is known; afterwards the same for the next one.
  Block block_at(std::size_t at, std::optional<Sum>& before) const {
    Block block{log_.frame(at), std::string(log_.page(at))};
    block.has_head = block.frame.salts == salts_ && is_page(block.frame.page);
    if (before) {
      const Sum sum = log_.sum_behind(*before, at);
      block.is_fault = block.frame.sum != sum;
      if (block.is_fault && continues(sum, at)) {
        block.good = true;  // it is the sum that is wrong
        before = sum;
        return block;
      }
      block.good = !block.is_fault || mend(*before, at, block.frame, block.body);
    } else {
      block.good = block.has_head && (is_certain(at) || goes_on_at(at + 1));
      block.is_fault = !block.good;
    }
    before = block.good || block.has_head ? std::optional(block.frame.sum) : std::nullopt;
    return block;
  }
  void keep(Block block) {
    if (!is_page(block.frame.page)) return;
    if (block.good) open_[block.frame.page] = std::move(block.body);
    if (block.frame.pages != 0) commit(block.frame.pages);
  }
  void commit(std::uint32_t all) {
    // What a page was before is no lie: rows of it may be missing, or of a time that has passed.
    for (auto& [number, bytes] : open_) pages[number] = std::move(bytes);
    open_.clear();
    if (all <= most_) {
      database_pages = all;
    } else {
      report_.faults.push_back(
          fmt::format("the log says that the database has {} pages, which cannot be", all));
    }
  }
  bool continues(const Sum& sum, std::size_t at) const {
    return at + 1 < log_.frames() && log_.frame(at + 1).sum == log_.sum_behind(sum, at + 1);
  }
  /// Whether this one's sum goes on from what stands in the one before.
  bool goes_on_at(std::size_t at) const {
    return at > 0 && at < log_.frames() && log_.frame(at).salts == salts_ &&
           log_.frame(at).sum == log_.sum_behind(log_.frame(at - 1).sum, at);
  }
  /// The last one that the engine wrote, as its mark says.
  bool is_certain(std::size_t at) const {
    return mark_ && mark_->written == at + 1 && mark_->written_sum == log_.frame(at).sum;
  }
  /// The first 8 bytes of its head and the page count for its sum.
  bool mend(const Sum& before, std::size_t at, LogFrame& frame, std::string& body) const {
    std::string both = log_.summed(at);
    const auto bit = changed_bit(both, log_.sum_behind(before, at), frame.sum, log_.words());
    if (!bit) return false;
    both[*bit / 8] = static_cast<char>(both[*bit / 8] ^ (1 << (*bit % 8)));
    frame.page = big_endian(both.data());
    frame.pages = big_endian(both.data() + 4);
    body = both.substr(8);
    return true;
  }
  void tell(std::size_t at, const Block& block) {
    const bool is_known = block.good || block.has_head;
    report_.faults.push_back(fmt::format(
        "block {} of the log, {} of the database, is bad{}", at + 1,
        is_known ? fmt::format("page {}", block.frame.page) : "nobody knows which page",
        block.good ? ", and was put right" : "; an older one is taken, where there is one"));
    report_.mended += block.good ? 1 : 0;
  }

  LogView log_;
  StoreReport& report_;
  std::uint64_t most_;  ///< pages that the database may have
  Salts salts_;
  std::optional<MarkText> mark_;
  std::size_t end_{0};  ///< behind the last frame that is certainly this log's
  std::map<std::uint32_t, std::string> open_;  ///< of a commit that is not finished
};

void spoil(std::string& page, std::uint64_t number) {
  put_sum(page, number);
  page.back() = static_cast<char>(page.back() ^ 1);
}

/// Of a page that has lost a part of its sum alone, where what is left of it is right.
bool complete_sum(std::string& page, std::size_t came, std::uint64_t number) {
  if (came == kPageSize || came < kPageSize - kSumSize) return false;
  std::string whole = page;
  put_sum(whole, number);
  if (whole.compare(0, came, page, 0, came) != 0) return false;
  page = std::move(whole);
  return true;
}

/// Where the file has lost its end, its head still says how long it was; SQLite takes nothing of a
/// file that is shorter than that.
std::uint64_t pages_of(const std::string& file, const Log& log, bool has_sums,
                       StoreReport& report) {
  if (log.database_pages != 0) return log.database_pages;
  if (!fs::exists(file)) return 0;
  const std::uint64_t lie_there = pages_in(file);
  std::string head(kPageSize, '\0');
  std::ifstream(file, std::ios::binary)
      .read(head.data(), static_cast<std::streamsize>(head.size()));
  // As SQLite decides whether to believe it (sqlite.org/fileformat2.html, 1.3.7).
  const bool is_right =
      has_sums && has_its_sum(head, 1) && std::equal(&head[24], &head[28], &head[92]);
  const std::uint64_t said = is_right ? big_endian(&head[28]) : lie_there;
  const std::uint64_t were = said <= log.most() ? said : lie_there;
  if (said > log.most())
    report.faults.push_back(
        fmt::format("its head says that it has {} pages, which cannot be", said));
  if (were > lie_there)
    report.faults.push_back(
        fmt::format("of {} pages the file has lost the last {}", were, were - lie_there));
  return std::max(lie_there, were);
}

}  // namespace

void put_together(const std::string& file, const std::string& to, bool has_sums,
                  StoreReport& report, const SalvageSaid& said) {
  const std::string log_bytes = read_whole(file + "-wal");
  const std::size_t faults_before = report.faults.size();
  Log log(log_bytes, parse_mark(read_whole(file + "-mark")), pages_in(file), report);
  std::ifstream in(file, std::ios::binary);
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  const std::uint64_t pages = pages_of(file, log, has_sums, report);
  std::string page(kPageSize, '\0');
  for (std::uint64_t number = 1; number <= pages; ++number) {
    if (number % kPagesBetweenWords == 0 && said) said("page", number, pages);
    page.assign(kPageSize, '\0');
    in.read(page.data(), static_cast<std::streamsize>(kPageSize));
    const auto came = static_cast<std::size_t>(in.gcount());
    in.clear();
    bool good = true;
    if (const auto newer = log.pages.find(static_cast<std::uint32_t>(number));
        newer != log.pages.end()) {
      page = newer->second;
    } else if (has_sums && !has_its_sum(page, number)) {
      good = complete_sum(page, came, number) || mend_page(page, number);
      report.faults.push_back(fmt::format("page {} of the database is bad{}", number,
                                          good ? ", and was put right" : ""));
      report.mended += good ? 1 : 0;
    }
    if (number == 1) page[18] = page[19] = 1;
    if (has_sums) put_sum(page, number);
    if (has_sums && !good) spoil(page, number);
    out.write(page.data(), static_cast<std::streamsize>(kPageSize));
  }
  if (report.faults.size() - faults_before > kBlocksNamed) {
    const std::size_t more = report.faults.size() - faults_before - kBlocksNamed;
    report.faults.resize(faults_before + kBlocksNamed);
    report.faults.push_back(fmt::format("{} more blocks are bad", more));
  }
  out.flush();
  if (!out) throw std::runtime_error(fmt::format("cannot write {}; is there room?", to));
}

}  // namespace hpcbatch::store
