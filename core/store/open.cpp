// Opens the store's file: what is damaged is refused as it lies there, what is old is taken over.
#include "store/file/mark.hpp"
#include "store/file/page_sums.hpp"
#include "store/layout.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

// So much is looked through before the store is used: a tenth of a second.
constexpr std::uint64_t kLookedThroughFirst = std::uint64_t{32} << 20;
// An older store up to that size is written anew, with sums.
constexpr std::uint64_t kWrittenAnew = std::uint64_t{256} << 20;
constexpr int kPagesAtOnce = 256;

Error refusal(const std::string& text) {
  return {Error::Kind::Rejected, text};
}

Error damaged(const std::string& file, const std::string& why) {
  return refusal(fmt::format(
      "the store {} cannot be used: {}. The engine does not start, and nothing was changed. "
      "`hpcbatch fsck` says what can be read, `hpcbatch fsck --salvage NEWFILE` writes it to a new "
      "file; or put back a copy that `hpcbatch backup` made. To begin anew, move {}* away",
      file, why, file));
}

Error unwritable(const std::string& file, const std::string& why) {
  return refusal(fmt::format(
      "the store {} cannot be written: {}. What it holds is not damaged; start the engine again "
      "when it can be written",
      file, why));
}

Error not_committed(const std::string& file, const Error& error) {
  return error.kind == Error::Kind::Transient ? unwritable(file, error.text)
                                              : damaged(file, error.text);
}

FoundFiles found_files(const std::string& file) {
  FoundFiles found{.boot = boot_of_machine()};
  std::ifstream database(file, std::ios::binary);
  found.first_page.resize(kPageSize);
  database.read(found.first_page.data(), static_cast<std::streamsize>(kPageSize));
  found.first_page.resize(
      static_cast<std::size_t>(std::max<std::streamsize>(database.gcount(), 0)));
  found.has_database = !found.first_page.empty();
  found.log = state_of_log(read_whole(file + "-wal"));
  const std::string mark = read_whole(file + "-mark");
  found.has_mark = !mark.empty();
  found.mark = parse_mark(mark);
  return found;
}

/// SQLite's lock on the database says that it lives, whatever became of the engine's own lock; 0:
/// nobody uses it.  Not for a process that has it open itself, which would give its lock away.
pid_t other_user_of(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return 0;
  // sqlite.org/src/file/src/os.h: the bytes from PENDING_BYTE to the end of the shared ones.
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0x40000000;
  lock.l_len = 512;
  const bool is_locked = ::fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(descriptor);
  return is_locked ? lock.l_pid : 0;
}

std::optional<Error> own_file(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0)
    return refusal(fmt::format("cannot open the store {}: {}", file, std::strerror(errno)));
  struct stat facts {};
  ::fstat(descriptor, &facts);
  ::close(descriptor);
  if (facts.st_uid == ::geteuid() && (facts.st_mode & 077) == 0) return std::nullopt;
  return refusal(fmt::format("the store {} is not ours alone (owner {}, mode {:o}); 'chmod 600' it",
                             file, facts.st_uid, facts.st_mode & 07777));
}

void sync_file(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool done = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int why = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!done) throw std::runtime_error(fmt::format("cannot write {}: {}", file, std::strerror(why)));
}

std::uint64_t size_of(const std::string& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : size;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& file) {
  std::optional<MarkText> mark;
  bool copy = false;
  if (const pid_t user = other_user_of(file); user != 0) {
    return Error{Error::Kind::Transient,
                 fmt::format("the store {} is in use by process {}", file, user)};
  }
  try {
    FoundFiles found = found_files(file);
    if (auto why = damage_of(found)) return damaged(file, *why);
    if (auto refused = own_file(file)) return *refused;
    copy = found.has_database && is_copy(found.first_page);
    mark = found.mark;
    // Before the first page that has a sum: one without the other is damage.
    if (Mark first(file + "-mark"); !found.has_mark && !first.write(true))
      return refusal(fmt::format("cannot write {}-mark: {}", file, std::strerror(errno)));
  } catch (const std::exception& e) {
    return damaged(file, e.what());
  }
  try {
    std::unique_ptr<Store> store;
    for (bool tried = false;; tried = true) {
      store.reset(new Store(file));
      if (mark) store->mark_.now = *mark;
      if (mark && mark->has_sums && !copy) set_sums(store->db_.handle(), Sums::Always);
      store->db_.leave_files_alone(true);
      leave_room_for_sums(store->db_.handle());
      // The engine is the only user, so that no shared memory is needed: that is what breaks on
      // network file systems.
      store->db_.execute(
          "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA cache_size=-8192;"
          "PRAGMA temp_store=MEMORY;");
      store->look_for_damage();
      if (tried || has_sums(store->db_.handle()) || size_of(file) > kWrittenAnew) break;
      store->db_.execute("PRAGMA journal_mode=DELETE");
      store.reset();
      give_sums(file);
    }
    store->migrate();
    store->compare_with_mark(copy);
    store->count_results();
    store->mark_.now.damage.clear();
    store->mark_.now.boot = boot_of_machine();
    store->mark_.now.has_sums = has_sums(store->db_.handle());
    if (const auto touched = store->commit({}, true); !touched)
      return not_committed(file, touched.error());
    if (!store->mark_.write(true)) {
      return refusal(fmt::format("cannot write {}-mark: {}", file, std::strerror(errno)));
    }
    store->db_.leave_files_alone(false);
    store->is_open_ = true;
    if (auto refused = store->note_parts()) return *refused;
    return store;
  } catch (const sqlite::SqlError& e) {
    return e.cannot_write() ? unwritable(file, e.what()) : damaged(file, e.what());
  } catch (const std::exception& e) {
    return damaged(file, e.what());
  }
}

std::optional<Error> Store::note_parts() {
  for (const char* part : {"", "-wal", "-mark"}) {
    struct stat facts {};
    if (::stat((file_ + part).c_str(), &facts) != 0)
      return refusal(fmt::format("cannot look at {}{}: {}", file_, part, std::strerror(errno)));
    parts_.push_back({file_ + part, facts.st_dev, facts.st_ino});
  }
  return std::nullopt;
}

/// One that was made without: it is written anew beside, and takes the place of the old when it is
/// whole.  Where there is no room for that, it goes on without.
void Store::give_sums(const std::string& file) {
  const std::string fresh = file + ".new";
  std::error_code ignored;
  fs::remove(fresh, ignored);
  try {
    {
      sqlite::Connection old(file);
      leave_room_for_sums(old.handle());
      old.query("VACUUM INTO CAST(? AS TEXT)").run(fresh);
    }
    fs::permissions(fresh, fs::perms::owner_read | fs::perms::owner_write);
    sync_file(fresh);
    fs::rename(fresh, file);
  } catch (const std::exception&) {
    fs::remove(fresh, ignored);
  }
}

void Store::look_for_damage() {
  // What an engine has met before is looked for however long that takes.
  if (size_of(file_) > kLookedThroughFirst && mark_.now.damage.empty()) return;
  if (const std::string found = db_.quick_check(); !found.empty()) throw std::runtime_error(found);
}

void Store::compare_with_mark(bool copy) {
  const std::uint64_t starts = std::stoull(meta("starts"));
  const std::string pruned = meta("pruned_array");
  const std::uint64_t highest =
      std::max<std::uint64_t>(highest_id(db_), pruned.empty() ? 0 : std::stoull(pruned));
  MarkText& mark = mark_.now;
  if (!copy && (starts < mark.starts || highest < mark.highest)) {
    throw std::runtime_error(fmt::format(
        "it is older than what lay here: it knows tasks up to {} and {} starts, there were {} "
        "and {}",
        highest, starts, mark.highest, mark.starts));
  }
  // What came after the copy was made is gone; its numbers are not given again.
  if (starts < mark.starts) set_meta("starts", std::to_string(mark.starts));
  if (highest < mark.highest) set_meta("pruned_array", std::to_string(mark.highest));
  mark.highest = std::max(mark.highest, highest);
}

void Store::check_beside(std::function<void(std::string)> found) {
  if (size_of(file_) <= kLookedThroughFirst) return;
  try {
    move_log();
  } catch (const sqlite::SqlError& e) {
    // A full disk: the next start looks.
    if (e.transient()) return;
    failure_of(e);
    throw;
  }
  if (!mark_.now.moved) return;
  checked_ = true;
  check_ = std::jthread([this, found = std::move(found)] {
    std::string damage;
    try {
      sqlite::Connection looked_at(file_, sqlite::Connection::Use::LookOnly);
      damage = looked_at.quick_check([this] { return !give_up_check_; });
    } catch (const std::exception& e) {
      damage = e.what();
    }
    checked_ = false;
    if (!damage.empty() && !give_up_check_) found(damage);
  });
}

bool Store::were_given(std::uint64_t highest, std::uint64_t starts) {
  const bool knows_ids = highest <= mark_.now.highest;
  const bool knows_starts = starts <= std::stoull(meta("starts"));
  if (!knows_ids) set_meta("pruned_array", std::to_string(highest));
  if (!knows_starts) set_meta("starts", std::to_string(starts));
  return !knows_ids || !knows_starts;
}

std::string Store::missing_part() const {
  for (const Part& part : parts_) {
    struct stat facts {};
    if (::stat(part.file.c_str(), &facts) != 0 || facts.st_dev != part.device ||
        facts.st_ino != part.inode)
      return part.file;
  }
  return {};
}

Result<void> Store::begin_copy(const std::string& file) {
  if (copy_) return Error{Error::Kind::Transient, "another copy is being made just now"};
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const int why = errno;
    if (why == EEXIST) return refusal(fmt::format("{} is there already; name a new file", file));
    return refusal(fmt::format("cannot make {}: {}", file, std::strerror(why)));
  }
  ::close(descriptor);
  try {
    copy_ = Copy{file, std::make_unique<sqlite::Copying>(db_, file)};
  } catch (const sqlite::SqlError& e) {
    std::error_code ignored;
    fs::remove(file, ignored);
    return refusal(e.what());
  }
  return {};
}

Result<bool> Store::copy_more() {
  if (!copy_) return refusal("the copy was given up");
  try {
    if (!copy_->copying->step(kPagesAtOnce)) return false;
    sync_file(copy_->file);
    copy_.reset();
    return true;
  } catch (const std::exception& e) {
    const std::string file = std::exchange(copy_, std::nullopt)->file;
    std::error_code ignored;
    for (const char* part : {"", "-wal", "-journal"}) fs::remove(file + part, ignored);
    return refusal(fmt::format("cannot write {}: {}", file, e.what()));
  }
}

}  // namespace hpcbatch::store
