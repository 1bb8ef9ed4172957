#include "store/sqlite.hpp"

#include <sqlite3.h>

namespace hpcbatch::sqlite {
namespace {

[[noreturn]] void fail(sqlite3* connection, std::string_view doing) {
  throw SqlError(sqlite3_extended_errcode(connection),
                 std::string(doing) + ": " + sqlite3_errmsg(connection));
}

}  // namespace

bool SqlError::disk_full() const { return (code & 0xFF) == SQLITE_FULL; }

bool SqlError::transient() const {
  const int primary = code & 0xFF;
  // A failed fsync may have dropped what was to be written: nothing after it can be believed (PostgreSQL, 2019).
  if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC) return false;
  return primary == SQLITE_FULL || primary == SQLITE_BUSY || primary == SQLITE_IOERR || primary == SQLITE_NOMEM;
}

Statement::Statement(sqlite3* connection, std::string_view text) : connection_(connection) {
  if (sqlite3_prepare_v3(connection, text.data(), static_cast<int>(text.size()), SQLITE_PREPARE_PERSISTENT,
                         &statement_, nullptr) != SQLITE_OK) {
    fail(connection, "cannot prepare a statement of the store");
  }
}

Statement::~Statement() { sqlite3_finalize(statement_); }

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

std::int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes ? std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size)) : std::string{};
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Statement::bind_at(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }

void Statement::bind_at(int at, std::string_view value) {
  sqlite3_bind_blob64(statement_, at, value.data() ? value.data() : "", value.size(), SQLITE_TRANSIENT);
}

void Statement::bind_at(int at, std::nullptr_t) { sqlite3_bind_null(statement_, at); }

Connection::Connection(const std::string& file) {
  if (sqlite3_open_v2(file.c_str(), &connection_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    const SqlError error(sqlite3_extended_errcode(connection_),
                         "cannot open the store " + file + ": " + sqlite3_errmsg(connection_));
    sqlite3_close(connection_);
    throw error;
  }
  sqlite3_extended_result_codes(connection_, 1);
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

Statement& Connection::query(const char* text) {
  const auto known = statements_.find(std::string_view(text));
  if (known != statements_.end()) {
    known->second->reset();
    return *known->second;
  }
  return *statements_.emplace(text, std::make_unique<Statement>(connection_, text)).first->second;
}

std::int64_t Connection::last_row() const { return sqlite3_last_insert_rowid(connection_); }

Transaction::Transaction(Connection& connection) : connection_(connection) { connection_.execute("BEGIN IMMEDIATE"); }

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
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace hpcbatch::sqlite
