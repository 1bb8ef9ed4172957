#include "store/sqlite.hpp"

#include <sqlite3.h>

namespace hpcbatch::sqlite {
namespace {

[[noreturn]] void fail(sqlite3* connection, std::string_view doing) {
  throw SqlError(sqlite3_extended_errcode(connection),
                 std::string(doing) + ": " + sqlite3_errmsg(connection));
}

}  // namespace

bool SqlError::disk_full() const {
  return (code & 0xFF) == SQLITE_FULL;
}

bool SqlError::transient() const {
  const int primary = code & 0xFF;
  // A failed fsync may have dropped what was to be written: nothing after it can be believed
  // (PostgreSQL, 2019).
  if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC) return false;
  return primary == SQLITE_FULL || primary == SQLITE_BUSY || primary == SQLITE_IOERR ||
         primary == SQLITE_NOMEM;
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
      const SqlError error(sqlite3_extended_errcode(connection_),
                           std::string("cannot use the store: ") + sqlite3_errmsg(connection_));
      sqlite3_reset(statement_);
      throw error;
    }
  }
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

Connection::Connection(const std::string& file) {
  // Its own count of what it allocates takes a lock each time; it is refused once SQLite is in use,
  // which is as well.
  static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(once);
  if (sqlite3_open_v2(file.c_str(), &connection_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    const SqlError error(sqlite3_extended_errcode(connection_),
                         "cannot open the store " + file + ": " + sqlite3_errmsg(connection_));
    sqlite3_close(connection_);
    throw error;
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

void Connection::checkpoint() {
  if (sqlite3_wal_checkpoint_v2(connection_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                nullptr) != SQLITE_OK) {
    fail(connection_, "cannot move the store's log into its database");
  }
  log_pages_ = 0;
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

}  // namespace hpcbatch::sqlite
