// Keeps the layout of the store's file, and commits.
#include "store/store.hpp"

#include "store/layout.hpp"

#include "model/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace hpcbatch::store {
namespace {

// The write-ahead log is moved into the database when it is this long: 16 MiB in pages of 4 KiB.
constexpr int kLongestLog = 4000;
// While the database is looked through beside, it may grow: to 256 MiB.
constexpr int kLongestLogOfCheck = 64'000;

}  // namespace

void Store::migrate() {
  sqlite::Transaction transaction(db_);
  if (!db_.query("SELECT 1 FROM sqlite_master WHERE name='meta'").step()) {
    make_tables(db_);
    char name[5];
    static constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char random[37];
    if (::getrandom(random, sizeof random, 0) != sizeof random)
      throw std::runtime_error("the system gives no random bytes");
    for (std::size_t i = 0; i < sizeof name; ++i) name[i] = kLetters[random[i] % kLetters.size()];
    set_meta("engine", std::string(name, sizeof name));
    set_meta("secret", std::string(reinterpret_cast<const char*>(random + 5), 32));
    set_meta("starts", "0");
    set_meta("pruned", "0");
  }
  take_over(db_);
  add_indexes(db_);
  transaction.commit();
}

std::string Store::meta(const char* key) {
  return meta_of(db_, key);
}

void Store::set_meta(const char* key, const std::string& value) {
  db_.query("INSERT OR REPLACE INTO meta VALUES(?,?)").run(key, value);
}

std::string Store::secret() {
  return meta("secret");
}

Result<void> Store::commit(const std::vector<Write>& writes, bool durable) {
  if (mark_.is_stale() && !mark_.write()) {
    return Error{Error::Kind::Transient,
                 fmt::format("cannot write {}-mark: {}", file_, std::strerror(errno))};
  }
  try {
    // The log's head must be on the disk before old blocks are written over: half of the old log
    // would otherwise be taken for newer than the database.
    wait_for_disk(durable || log_begins_);
    sqlite::Transaction transaction(db_);
    totals_then_ = totals_;
    happened_then_ = happened_;
    results_.clear();
    environment_ = {};
    if (!std::exchange(leases_known_, false)) leases_.load();
    for (const Write& write : writes) apply(write);
    count_arrays_of_environment();
    save_results();
    // A transaction that writes nothing is not synced: the earlier ones that were not would stay
    // so.
    if (durable) db_.query("UPDATE meta SET value=value WHERE key=CAST('version' AS BLOB)").run();
    transaction.commit();
    totals_ = totals_then_;
    happened_ = happened_then_;
    leases_known_ = true;
  } catch (const sqlite::SqlError& e) {
    history_.known_ends().forget_all();
    return failure_of(e);
  } catch (const std::exception& e) {
    history_.known_ends().forget_all();
    return Error{Error::Kind::Rejected, e.what()};  // what was stored cannot be read
  }
  const bool synced = std::exchange(log_begins_, false) || durable;
  note_commit(synced);
  return shorten_log();
}

Error Store::failure_of(const sqlite::SqlError& error) {
  if (error.transient()) {
    std::string text = error.what();
    struct statvfs room {};
    const std::string folder = file_.substr(0, file_.rfind('/') + 1);
    if (error.disk_full() && ::statvfs(folder.c_str(), &room) == 0) {
      text += fmt::format("; {} KiB are free in {}",
                          std::uint64_t{room.f_bavail} * room.f_frsize / 1024, folder);
    }
    return {Error::Kind::Transient, text};
  }
  if (error.damaged()) {
    note_damage(error.what());
  } else {
    // What was written and not synced may be anything now.
    mark_.now.written = mark_.now.synced;
    mark_.now.written_sum = mark_.now.synced_sum;
    mark_.write();
  }
  return {Error::Kind::Rejected, error.what()};
}

void Store::note_damage(const std::string& text) {
  db_.leave_files_alone(true);
  mark_.now.damage = text;
  mark_.write(true);
}

/// Whoever is told of the commit is told behind this.
void Store::note_commit(bool durable) {
  const int pages = db_.log_pages();
  if (log_ < 0) log_ = ::open((file_ + "-wal").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  const auto frame = read_frame(log_, static_cast<std::uint64_t>(pages));
  if (!frame) return;
  MarkText& mark = mark_.now;
  if (mark.salts != frame->salts) mark.synced = 0;
  mark.salts = frame->salts;
  mark.written = static_cast<std::uint64_t>(pages);
  mark.written_sum = frame->sum;
  if (durable) {
    mark.synced = mark.written;
    mark.synced_sum = mark.written_sum;
    mark.highest = std::max(mark.highest, highest_);
  }
  mark.moved = mark.closed = false;
  mark_.write();
}

Store::~Store() {
  give_up_check_ = true;
  if (check_.joinable()) check_.join();
  copy_.reset();
  // Closing the database moves the log into it.
  try {
    wait_for_disk(true);
    // What lies there by now is somebody else's.
    if (!missing_part().empty())
      db_.leave_files_alone(true);
    else if (mark_.now.damage.empty() && is_open_ && db_.checkpoint()) {
      mark_.now.moved = mark_.now.closed = true;
      mark_.write(true);
    }
  } catch (const sqlite::SqlError&) {
    // Then it is as after a kill: the log stays, or is moved and may not be synced.
  }
  if (log_ >= 0) ::close(log_);
}

void Store::wait_for_disk(bool wait) {
  if (durable_ == wait) return;
  db_.execute(wait ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=OFF");
  durable_ = wait;
}

Result<void> Store::shorten_log() {
  if (db_.log_pages() < kLongestLog) return {};
  if (checked_) {
    if (db_.log_pages() < kLongestLogOfCheck) return {};
    give_up_check_ = true;
    return {};
  }
  try {
    move_log();
  } catch (const sqlite::SqlError& e) {
    // All is in the log; should it not fit the database now, it will be tried after the next
    // commit.
    if (!e.transient()) return failure_of(e);
  }
  return {};
}

void Store::move_log() {
  // Neither the log nor the database would be synced otherwise, and what was durable in the log
  // would be so no more.
  wait_for_disk(true);
  if (!db_.checkpoint()) return;
  mark_.now.synced = mark_.now.written;
  mark_.now.synced_sum = mark_.now.written_sum;
  mark_.now.moved = true;
  mark_.write(true);
  log_begins_ = true;
}

void Store::apply(const Write& write) {
  // Results wait for their neighbours, but not behind what looks at them.
  const bool looks = std::holds_alternative<SaveArrayEnded>(write.what) ||
                     std::holds_alternative<SaveRevived>(write.what) ||
                     std::holds_alternative<SaveResults>(write.what);
  if (looks) save_results();
  match(
      write.what, [&](const SaveArrays& s) { save(s, write); }, [&](const auto& s) { save(s); });
}

bool Store::learn(std::uint64_t tasks) {
  sqlite::Transaction transaction(db_);
  records::Spread spread;
  const bool more = records_.learn(tasks, &spread);
  transaction.commit();
  happened_.spread.add(spread);
  note_commit(false);
  (void)shorten_log();  // should it fail, the next commit will try and tell
  return more;
}

void Store::count_results() {
  totals_ = {};
  sqlite::Statement rows =
      db_.query("SELECT failure, sum(last-first+1) FROM results GROUP BY failure");
  while (rows.step())
    totals_.of(static_cast<Failure>(rows.number(0))) += static_cast<std::uint64_t>(rows.number(1));
}

}  // namespace hpcbatch::store
