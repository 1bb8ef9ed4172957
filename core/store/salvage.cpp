// Puts database and log of a damaged store together page by page, as far as their sums are right,
// and copies what SQLite can read of that.
#include "store/salvage.hpp"

#include "store/damage.hpp"
#include "store/page_sums.hpp"
#include "store/sqlite.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <unistd.h>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

// What one read takes over at once; a damaged page costs a look for each of its rows.
constexpr std::int64_t kGap = 1024;
constexpr const char* kTables[] = {"meta",     "environments", "arrays", "dependencies", "items",
                                   "attempts", "results",      "leases", "allocations"};

/// Puts one changed bit right, if it is one: `sum` says what is right.
template <class IsRight>
bool mend_bit(std::string& bytes, const IsRight& is_right) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      if (is_right(bytes)) return true;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    }
  }
  return false;
}

struct LoggedPage {
  std::string bytes;
  bool is_good{true};
};

/// The newest of each page that finished commits of the log hold.  A frame whose sum is wrong is
/// known by what follows it.
class Log {
 public:
  Log(std::string_view bytes, StoreReport& report) : log_(bytes), report_(report) { read(); }
  std::map<std::uint32_t, LoggedPage> pages;
  std::uint32_t database_pages{0};

 private:
  void read() {
    if (log_.frames() == 0) return;
    salts_ = log_.has_header() ? log_.salts() : log_.frame(0).salts;
    Sum before = log_.seed();
    for (std::size_t at = 0; at < log_.frames(); ++at) {
      LogFrame frame = log_.frame(at);
      std::string body(log_.page(at));
      const Sum sum = log_.sum_behind(before, at);
      const bool follows = sum == frame.sum;
      // Old frames behind the end of this log have other salts, and sums that do not fit it.
      if (!follows && frame.salts != salts_) break;
      bool good = follows;
      if (!good && continues(sum, at)) {
        good = true;  // it is the sum that is wrong
        before = sum;
      } else {
        if (!good) good = mend(before, at, frame, body);
        before = frame.sum;
      }
      if (!good && !goes_on(at)) break;  // the torn end
      if (!follows) tell(at, frame, good);
      if (frame.page == 0 || frame.page > kMostPages) continue;
      open_[frame.page] = {std::move(body), good};
      if (frame.pages != 0) commit(frame.pages);
    }
  }
  void commit(std::uint32_t all) {
    for (auto& [number, page] : open_) pages[number] = std::move(page);
    open_.clear();
    database_pages = all;
  }
  bool continues(const Sum& sum, std::size_t at) const {
    return at + 1 < log_.frames() && log_.frame(at + 1).sum == log_.sum_behind(sum, at + 1);
  }
  bool goes_on(std::size_t at) const {
    for (std::size_t next = at + 1; next < log_.frames(); ++next) {
      if (log_.frame(next).salts == salts_ &&
          log_.frame(next).sum == log_.sum_behind(log_.frame(next - 1).sum, next))
        return true;
    }
    return false;
  }
  /// The first 8 bytes of its head and the page count for its sum.
  bool mend(const Sum& before, std::size_t at, LogFrame& frame, std::string& body) const {
    std::string both = log_.summed(at);
    if (!mend_bit(both, [&](const std::string& bytes) {
          return sum_of(before, bytes, log_.words()) == frame.sum;
        }))
      return false;
    frame.page = big_endian(both.data());
    frame.pages = big_endian(both.data() + 4);
    body = both.substr(8);
    return true;
  }
  void tell(std::size_t at, const LogFrame& frame, bool good) {
    report_.faults.push_back(fmt::format("block {} of the log, page {} of the database, is bad{}",
                                         at + 1, frame.page, good ? ", and was put right" : ""));
    report_.mended += good ? 1 : 0;
  }

  static constexpr std::uint32_t kMostPages = 1U << 30;
  LogView log_;
  StoreReport& report_;
  Salts salts_;
  std::map<std::uint32_t, LoggedPage> open_;  ///< of a commit that is not finished
};

void spoil(std::string& page, std::uint64_t number) {
  put_sum(page, number);
  page.back() = static_cast<char>(page.back() ^ 1);
}

/// `to` is the database with all of its log in it, in rollback mode; a page that cannot be believed
/// has a wrong sum there.
void put_together(const std::string& file, const std::string& to, bool has_sums,
                  StoreReport& report) {
  const std::string log_bytes = read_whole(file + "-wal");
  Log log(log_bytes, report);
  std::ifstream in(file, std::ios::binary);
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  std::uint64_t pages = (fs::exists(file) ? fs::file_size(file) : 0) / kPageSize;
  if (log.database_pages != 0) pages = log.database_pages;
  std::string page(kPageSize, '\0');
  for (std::uint64_t number = 1; number <= pages; ++number) {
    page.assign(kPageSize, '\0');
    in.read(page.data(), static_cast<std::streamsize>(kPageSize));
    in.clear();
    bool good = true;
    if (const auto newer = log.pages.find(static_cast<std::uint32_t>(number));
        newer != log.pages.end()) {
      page = newer->second.bytes;
      good = newer->second.is_good;
    } else if (has_sums && !has_its_sum(page, number)) {
      good = mend_bit(page, [&](const std::string& p) { return has_its_sum(p, number); });
      report.faults.push_back(fmt::format("page {} of the database is bad{}", number,
                                          good ? ", and was put right" : ""));
      report.mended += good ? 1 : 0;
    }
    if (number == 1) page[18] = page[19] = 1;
    if (has_sums) put_sum(page, number);
    if (has_sums && !good) spoil(page, number);
    out.write(page.data(), static_cast<std::streamsize>(kPageSize));
  }
  out.flush();
  if (!out) throw std::runtime_error(fmt::format("cannot write {}; is there room?", to));
}

/// Copies a table's rows; what a bad page holds is left out.
class TableCopy {
 public:
  TableCopy(sqlite::Connection& from, std::string table, StoreReport& report)
      : from_(from), table_(std::move(table)), report_(report) {}

  void run() {
    const bool by_row = table_ == "environments" || table_ == "arrays" || table_ == "results";
    const bool whole = attempt(insert_ + " SELECT * FROM old." + table_);
    if (!whole) {
      report_.faults.push_back("not all of '" + table_ + "' can be read");
      // From both ends: what lies between is the damage.
      const std::string key = by_row ? "rowid" : keys_of(table_);
      row_by_row("SELECT * FROM old." + table_ + " ORDER BY " + key);
      row_by_row("SELECT * FROM old." + table_ + " ORDER BY " + downwards(key));
      if (by_row) across_gaps();
    }
    report_.rows.emplace_back(table_, total());
  }

 private:
  static std::string keys_of(const std::string& table) {
    if (table == "meta") return "key";
    if (table == "dependencies") return "on_array,array";
    if (table == "items") return "array,item";
    if (table == "attempts") return "array,item,attempt,epoch";
    if (table == "leases") return "array,first";
    return "rowid";
  }
  static std::string downwards(std::string key) {
    for (std::size_t at = 0; (at = key.find(',', at)) != std::string::npos; at += 6)
      key.replace(at, 1, " DESC,");
    return key + " DESC";
  }
  const char* kept(std::string text) {
    return texts_.emplace_back(std::make_unique<std::string>(std::move(text)))->c_str();
  }
  bool attempt(const std::string& text) {
    try {
      from_.execute("SAVEPOINT part; " + text + "; RELEASE part");
      return true;
    } catch (const sqlite::SqlError&) {
      from_.execute("ROLLBACK TO part; RELEASE part");
      return false;
    }
  }
  /// A part after another, as long as it can be read.
  void row_by_row(const std::string& select) {
    for (std::int64_t at = 0, size = kGap; size != 0;) {
      const std::string part = select + fmt::format(" LIMIT {} OFFSET {}", size, at);
      const std::uint64_t had = total();
      if (!attempt(insert_ + " " + part)) {
        size /= 2;
      } else {
        at += size;
        if (total() == had && !any(part)) return;
      }
    }
  }
  bool any(const std::string& part) {
    try {
      return from_.query(kept(part)).step();
    } catch (const sqlite::SqlError&) {
      return false;
    }
  }
  std::uint64_t total() {
    sqlite::Statement count = from_.query(kept("SELECT count(*) FROM " + table_));
    count.step();
    return static_cast<std::uint64_t>(count.number(0));
  }
  void across_gaps() {
    sqlite::Statement gaps = from_.query(kept("SELECT rowid, (SELECT min(rowid) FROM " + table_ +
                                              " b WHERE b.rowid>a.rowid) AS next FROM " + table_ +
                                              " a WHERE next>a.rowid+1"));
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    while (gaps.step()) found.emplace_back(gaps.number(0), gaps.number(1));
    for (const auto& [low, high] : found) {
      for (std::int64_t id = low + 1; id < high && id < low + 100'000; ++id)
        attempt(fmt::format("{} SELECT * FROM old.{} WHERE rowid={}", insert_, table_, id));
    }
  }

  sqlite::Connection& from_;
  std::string table_;
  // A new store has words of its own there.
  std::string insert_{(table_ == "meta" ? "INSERT OR REPLACE INTO " : "INSERT OR IGNORE INTO ") +
                      table_};
  StoreReport& report_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char letter : text) out += letter == '\'' ? std::string("''") : std::string(1, letter);
  return out + "'";
}

struct Removed {
  std::string file;
  ~Removed() {
    std::error_code ignored;
    for (const char* part : {"", "-wal", "-mark", "-journal"}) fs::remove(file + part, ignored);
  }
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

StoreReport looked_through(const std::string& file, const std::string& work) {
  if (!fs::exists(file) && !fs::exists(file + "-wal"))
    throw std::runtime_error(file + " is not there");
  StoreReport report;
  bool has_sums = false;
  add_faults_of_files(file, report, has_sums);
  put_together(file, work, has_sums, report);
  sqlite::Connection connection(work);
  if (has_sums) set_sums(connection.handle(), Sums::Always);
  if (const std::string found = connection.quick_check(); !found.empty())
    report.faults.push_back(found);
  if (!report.is_good()) return report;
  for (const char* table : kTables) {
    sqlite::Statement count =
        connection.query((std::string("SELECT count(*) FROM ") + table).c_str());
    count.step();
    report.rows.emplace_back(table, static_cast<std::uint64_t>(count.number(0)));
  }
  return report;
}

Error not_done(const std::string& text) {
  return {Error::Kind::Rejected, text};
}

}  // namespace

Result<StoreReport> look_through(const std::string& file, const std::string& folder) {
  const Removed work{fmt::format("{}/hpcbatch-fsck-{}.db", folder, ::getpid())};
  try {
    return looked_through(file, work.file);
  } catch (const std::exception& e) {
    return not_done(fmt::format("cannot look through {}: {}", file, e.what()));
  }
}

Result<StoreReport> salvage(const std::string& file, const std::string& into) {
  if (fs::exists(into) || fs::is_symlink(into))
    return not_done(into + " is there already; name a new file");
  const Removed work{into + ".part"};
  const Removed fresh{into + ".made"};
  try {
    StoreReport report = looked_through(file, work.file);
    report.rows.clear();
    {
      auto made = Store::open(fresh.file);
      if (!made) return made.error();
    }
    {
      sqlite::Connection connection(fresh.file);
      connection.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL");
      connection.execute("ATTACH " + quoted(work.file) + " AS old; BEGIN");
      for (const char* table : kTables) TableCopy(connection, table, report).run();
      connection.execute("COMMIT; DETACH old");
      connection.execute("PRAGMA journal_mode=DELETE");
    }
    auto checked = sqlite::Connection(fresh.file).quick_check();
    if (!checked.empty()) return not_done("what was written is not good: " + checked);
    fs::permissions(fresh.file, fs::perms::owner_read | fs::perms::owner_write);
    fs::rename(fresh.file, into);
    return report;
  } catch (const std::exception& e) {
    return not_done(fmt::format("cannot salvage {}: {}", file, e.what()));
  }
}

}  // namespace hpcbatch::store
