#include "store/file/damage.hpp"

#include "store/file/page_sums.hpp"

#include <fmt/format.h>

namespace hpcbatch::store {
namespace {

constexpr std::size_t kWriteVersion = 18;  // in the first page: 1 rollback journal, 2 WAL

std::optional<std::string> without_mark(const FoundFiles& files) {
  // Programs that ended pages with sums have always written a mark before all else.
  if (!is_copy(files.first_page) && leaves_room_for_sums(files.first_page)) {
    return fmt::format("its mark (store.db-mark), which says what must be in it, {}",
                       files.has_mark ? "cannot be read" : "is gone");
  }
  // A store of an earlier version, or a copy that was put back.
  if (files.log.behind == 0) return std::nullopt;
  return fmt::format("a block in the middle of its log is bad, with {} good ones behind it",
                     files.log.behind);
}

bool is_next(const Salts& salts, const Salts& before) {
  return salts.first == before.first + 1;
}

std::optional<std::string> damage_of_log(const LogState& log, const MarkText& mark,
                                         bool same_boot) {
  const bool is_this = log.has_header && log.salts == mark.salts;
  if (!is_this) {
    if (mark.closed || mark.written == 0) return std::nullopt;
    const bool may_be_next = log.bytes == 0 || !log.has_header || is_next(log.salts, mark.salts);
    if (mark.moved && may_be_next && !(same_boot && log.bytes != 0 && !log.has_header))
      return std::nullopt;
    if (log.bytes == 0)
      return fmt::format("its log is gone, which held {} blocks that are nowhere else",
                         mark.written);
    return std::string(log.has_header ? "its log is another one than it was written with"
                                      : "the head of its log is bad");
  }
  // What was written but not yet on the disk outlives everything but the machine.
  const bool all = same_boot || mark.moved || mark.closed;
  const std::uint64_t wanted = all ? mark.written : mark.synced;
  const Sum& sum = all ? mark.written_sum : mark.synced_sum;
  if (log.sums.size() < wanted) {
    return fmt::format("its log is damaged: of {} blocks only the first {} can be read", wanted,
                       log.sums.size());
  }
  if (wanted != 0 && log.sums[wanted - 1] != sum)
    return std::string("its log is another one than it was written with");
  return std::nullopt;
}

}  // namespace

bool is_copy(std::string_view first_page) {
  return first_page.size() > kWriteVersion && first_page[kWriteVersion] == 1;
}

std::optional<std::string> damage_of(const FoundFiles& files) {
  if (!files.has_mark || !files.mark) {
    if (!files.has_database && files.log.sums.empty() && files.log.behind == 0) return std::nullopt;
    if (!files.has_database)
      return std::string("its database is gone or empty, but a log of it is there");
    return without_mark(files);
  }
  const MarkText& mark = *files.mark;
  if (!files.has_database) {
    if (mark.highest == 0 && mark.starts == 0) return std::nullopt;
    return fmt::format("its database is gone or empty; it had tasks up to {}", mark.highest);
  }
  if (is_copy(files.first_page)) {
    if (files.log.bytes == 0) return std::nullopt;
    return std::string("it is a copy that was put back, and the log of another lies beside it");
  }
  if (auto damage = damage_of_log(files.log, mark, mark.boot == files.boot)) return damage;
  if (mark.has_sums && !files.log.has_first_page && !has_its_sum(files.first_page, 1))
    return std::string("its first page is damaged");
  return std::nullopt;
}

}  // namespace hpcbatch::store
