#include "store/file/sqlite.hpp"

#include "store/file/page_sums.hpp"

#include <sqlite3.h>

#include <string>
#include <utility>

#include <sys/resource.h>

namespace hpcbatch::sqlite {
namespace {

/// SQLite does not say that it was the limit (RLIMIT_FSIZE in getrlimit(2)).
std::string about_file_size(int code) {
  rlimit limit{};
  if (code != SQLITE_IOERR_WRITE || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return {};
  return "; the engine may write no file larger than " + std::to_string(limit.rlim_cur / 1024) +
         " KiB (ulimit -f): stop it, and start it where that limit is higher";
}

std::string text_of(sqlite3* connection) {
  const int code = sqlite3_extended_errcode(connection);
  if (code == SQLITE_IOERR_DATA) return "a page of the database is not as it was written";
  return sqlite3_errmsg(connection) + about_file_size(code);
}

[[noreturn]] void fail(sqlite3* connection, std::string_view doing) {
  throw SqlError(sqlite3_extended_errcode(connection),
                 std::string(doing) + ": " + text_of(connection));
}

/// As it stands in a file's address.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char letter : path) {
    if (letter == '%' || letter == '?' || letter == '#') {
      static constexpr char kDigits[] = "0123456789ABCDEF";
      out += {'%', kDigits[letter >> 4], kDigits[letter & 15]};
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

bool SqlError::disk_full() const {
  return (code & 0xFF) == SQLITE_FULL;
}

bool SqlError::cannot_write() const {
  return disk_full() || code == SQLITE_IOERR_WRITE;
}

bool SqlError::transient() const {
  const int primary = code & 0xFF;
  // A failed fsync may have dropped what was to be written: nothing after it can be believed
  // (PostgreSQL, 2019).
  if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC || damaged()) return false;
  return primary == SQLITE_FULL || primary == SQLITE_BUSY || primary == SQLITE_IOERR ||
         primary == SQLITE_NOMEM;
}

bool SqlError::damaged() const {
  const int primary = code & 0xFF;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || code == SQLITE_IOERR_DATA ||
         code == SQLITE_IOERR_CORRUPTFS;
}

Statement::~Statement() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool Statement::step() {
  switch (sqlite3_step(statement_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default: {
      const int code = sqlite3_extended_errcode(connection_);
      const std::string text = "cannot use the store: " + text_of(connection_);
      sqlite3_reset(statement_);
      throw SqlError(code, text);
    }
  }
}

void Statement::run_with(const Statement& row, int first) {
  for (int i = first; i < row.columns(); ++i)
    sqlite3_bind_value(statement_, i - first + 1, sqlite3_column_value(row.statement_, i));
  while (step()) {
  }
}

int Statement::columns() const {
  return sqlite3_column_count(statement_);
}

std::string Statement::name(int column) const {
  return sqlite3_column_name(statement_, column);
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string_view Statement::bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return {static_cast<const char*>(bytes), bytes ? static_cast<std::size_t>(size) : 0};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

void Statement::bind_at(int at, std::int64_t value) {
  sqlite3_bind_int64(statement_, at, value);
}

void Statement::bind_at(int at, std::string_view value) {
  sqlite3_bind_blob64(statement_, at, value.data() ? value.data() : "", value.size(),
                      lifetime_ == Lifetime::UntilRun ? SQLITE_STATIC : SQLITE_TRANSIENT);
}

void Statement::bind_at(int at, std::nullptr_t) {
  sqlite3_bind_null(statement_, at);
}

Connection::Connection(const std::string& file, Use use) {
  // Its own count of what it allocates takes a lock each time; it is refused once SQLite is in use,
  // which is as well.
  static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(once);
  const bool own = use == Use::Own;
  const std::string name = own ? file : "file:" + escaped(file) + "?immutable=1";
  const int how =
      own ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  if (sqlite3_open_v2(name.c_str(), &connection_, how | SQLITE_OPEN_NOMUTEX, store::page_sums()) !=
      SQLITE_OK) {
    const int code = sqlite3_extended_errcode(connection_);
    const std::string text = "cannot open the store " + file + ": " + sqlite3_errmsg(connection_);
    sqlite3_close(connection_);
    throw SqlError(code, text);
  }
  sqlite3_extended_result_codes(connection_, 1);
  // This also takes the place of SQLite's own hook, which would checkpoint within any commit.
  sqlite3_wal_hook(
      connection_,
      [](void* pages, sqlite3*, const char*, int now) {
        *static_cast<int*>(pages) = now;
        return SQLITE_OK;
      },
      &log_pages_);
}

Connection::~Connection() {
  statements_.clear();
  sqlite3_close(connection_);
}

void Connection::execute(const std::string& text) {
  if (sqlite3_exec(connection_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail(connection_, "cannot use the store");
  }
}

Statement Connection::query(const char* text) {
  auto at = statements_.find(std::string_view(text));
  if (at == statements_.end()) {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v3(connection_, text, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr) !=
        SQLITE_OK) {
      fail(connection_, "cannot prepare a statement of the store");
    }
    at = statements_.emplace(text, prepared).first;
  }
  return {connection_, at->second.get()};
}

void Connection::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

bool Connection::checkpoint() {
  int pages = 0, moved = 0;
  if (sqlite3_wal_checkpoint_v2(connection_, nullptr, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved) !=
      SQLITE_OK) {
    fail(connection_, "cannot move the store's log into its database");
  }
  log_pages_ = 0;
  return pages == moved;
}

void Connection::leave_files_alone(bool leave) {
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave ? 1 : 0, nullptr);
}

std::string Connection::quick_check(const std::function<bool()>& go_on) {
  constexpr int kBetweenLooks = 10'000;  // steps of SQLite's own machine
  std::function<bool()> ask = go_on;
  if (ask) {
    sqlite3_progress_handler(
        connection_, kBetweenLooks,
        [](void* asked) { return (*static_cast<std::function<bool()>*>(asked))() ? 0 : 1; }, &ask);
  }
  std::string found;
  try {
    Statement check = query("PRAGMA quick_check(1)");
    if (check.step()) found = check.text(0);
    if (found == "ok") found.clear();
  } catch (const SqlError& e) {
    if ((e.code & 0xFF) != SQLITE_INTERRUPT) found = e.what();
  }
  sqlite3_progress_handler(connection_, 0, nullptr, nullptr);
  return found;
}

std::int64_t Connection::last_row() const {
  return sqlite3_last_insert_rowid(connection_);
}

Transaction::Transaction(Connection& connection) : connection_(connection) {
  connection_.query("BEGIN IMMEDIATE").run();
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    connection_.execute("ROLLBACK");
  } catch (const SqlError&) {
    // Some errors have rolled back already; there is nothing more to undo.
    open_ = false;
  }
}

void Transaction::commit() {
  connection_.query("COMMIT").run();
  open_ = false;
}

Copying::Copying(Connection& from, const std::string& to) : to_(to) {
  // It lies in one file at its end; what comes of a copy that was cut off is thrown away.
  to_.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF");
  backup_ = sqlite3_backup_init(to_.handle(), "main", from.handle(), "main");
  if (backup_ == nullptr) fail(to_.handle(), "cannot begin the copy");
}

Copying::~Copying() {
  if (backup_ != nullptr) sqlite3_backup_finish(backup_);
}

bool Copying::step(int pages) {
  const int code = sqlite3_backup_step(backup_, pages);
  if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED) return false;
  const int finished = sqlite3_backup_finish(std::exchange(backup_, nullptr));
  if (code != SQLITE_DONE || finished != SQLITE_OK) {
    throw SqlError(code == SQLITE_DONE ? finished : code,
                   std::string("cannot make the copy: ") + sqlite3_errstr(code & 0xFF));
  }
  to_.execute("PRAGMA journal_mode=DELETE");
  return true;
}

}  // namespace hpcbatch::sqlite
