// The little of SQLite that the store uses: a connection, statements that are prepared once, errors
// as exceptions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_backup;
struct sqlite3_stmt;

namespace hpcbatch::sqlite {

/// `code` is SQLite's extended result code.
struct SqlError : std::runtime_error {
  SqlError(int error_code, const std::string& text) : std::runtime_error(text), code(error_code) {}
  int code;
  bool disk_full() const;
  /// A file took nothing more: the disk is full, or the file is as large as a process may make it.
  bool cannot_write() const;
  /// The same statement may succeed later.
  bool transient() const;
  /// What was read is not what was written.
  bool damaged() const;
};

/// One use of a prepared statement, which ends with it: a statement that still stands on a row
/// holds a read transaction, and no checkpoint gets past that.  Bound from 1, read from 0.
class Statement {
 public:
  Statement(sqlite3* connection, sqlite3_stmt* prepared)
      : connection_(connection), statement_(prepared) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  template <class... Values>
  Statement& bind(const Values&... values) {
    int at = 0;
    (bind_at(++at, values), ...);
    return *this;
  }
  /// True while there are rows.
  bool step();
  /// Bound without a copy, and worked off at once.
  template <class... Values>
  void run(const Values&... values) {
    lifetime_ = Lifetime::UntilRun;
    bind(values...);
    while (step()) {
    }
  }
  /// The same with the values of another statement's row, from that column on.
  void run_with(const Statement& row, int first);
  int columns() const;
  std::string name(int column) const;
  std::int64_t number(int column) const;
  std::string text(int column) const { return std::string(bytes(column)); }
  /// Until the next step.
  std::string_view bytes(int column) const;
  bool is_null(int column) const;

 private:
  void bind_at(int at, std::int64_t value);
  void bind_at(int at, std::uint64_t value) { bind_at(at, static_cast<std::int64_t>(value)); }
  void bind_at(int at, int value) { bind_at(at, std::int64_t{value}); }
  void bind_at(int at, unsigned value) { bind_at(at, std::int64_t{value}); }
  void bind_at(int at, bool value) { bind_at(at, std::int64_t{value}); }
  void bind_at(int at, std::string_view value);
  void bind_at(int at, const std::string& value) { bind_at(at, std::string_view(value)); }
  void bind_at(int at, const char* value) { bind_at(at, std::string_view(value)); }
  void bind_at(int at, std::nullptr_t);

  enum class Lifetime : std::uint8_t { Unknown, UntilRun };

  sqlite3* connection_;
  sqlite3_stmt* statement_;
  Lifetime lifetime_{Lifetime::Unknown};  ///< of what is bound
};

/// One file, one thread at a time.
class Connection {
 public:
  enum class Use : std::uint8_t {
    Own,      ///< made where there is none
    LookOnly  ///< as it is in the file, whatever its log says; nobody may write to it meanwhile
  };
  explicit Connection(const std::string& file, Use use = Use::Own);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void execute(const std::string& text);
  /// A statement by its text, prepared at first use.  One use of a text at a time.
  Statement query(const char* text);
  std::int64_t last_row() const;
  /// Size of the write-ahead log after the last commit, in pages.  SQLite itself never checkpoints
  /// this connection.
  int log_pages() const { return log_pages_; }
  /// Moves the write-ahead log into the database, as far as no statement stands on a row; true:
  /// all of it.
  bool checkpoint();
  /// Whether closing leaves database and log as they are, instead of moving the one into the other.
  void leave_files_alone(bool leave);
  /// Nothing where all is well; else the first fault that SQLite finds.  Reads the whole database.
  /// `go_on` is asked now and then, from this thread; false ends it, as if all were well.
  std::string quick_check(const std::function<bool()>& go_on = {});
  sqlite3* handle() const { return connection_; }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  sqlite3* connection_{nullptr};
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>, std::less<>> statements_;
  int log_pages_{0};
};

/// Rolled back unless committed.
class Transaction {
 public:
  explicit Transaction(Connection& connection);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Connection& connection_;
  bool open_{true};
};

/// Makes a copy of a database bit by bit, beside its other use by the same thread.
class Copying {
 public:
  /// `to` is empty or not there.
  Copying(Connection& from, const std::string& to);
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;
  ~Copying();
  /// So many pages more; true: that was all, and the copy is a database by itself.
  bool step(int pages);

 private:
  Connection to_;
  sqlite3_backup* backup_{nullptr};
};

}  // namespace hpcbatch::sqlite
