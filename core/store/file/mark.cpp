#include "store/file/mark.hpp"

#include "store/file/page_sums.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace hpcbatch::store {
namespace {

// One sector of a disk: written whole or not at all.
constexpr std::size_t kSize = 512;
constexpr std::size_t kLongestDamage = 160;
constexpr std::string_view kFirstWord = "hpcbatch-mark-1";

std::string sum_text(const Sum& sum) {
  return fmt::format("{:08x}{:08x}", sum.first, sum.second);
}

/// Words separated by blanks, the damage last.
std::string words_of(const MarkText& mark) {
  std::string damage = mark.damage.substr(0, kLongestDamage);
  std::replace(damage.begin(), damage.end(), '\n', ' ');
  return fmt::format("{} {} {} {} {} {} {} {} {:d} {:d} {:d} {} {} {}", kFirstWord,
                     mark.boot.empty() ? "-" : mark.boot, mark.salts.first, mark.salts.second,
                     mark.synced, sum_text(mark.synced_sum), mark.written,
                     sum_text(mark.written_sum), mark.moved, mark.closed, mark.has_sums,
                     mark.highest, mark.starts, damage);
}

std::string sum_of_words(const std::string& words) {
  std::string padded = words;
  padded.resize((words.size() + 8) / 8 * 8, ' ');
  return sum_text(sum_of({1, 2}, padded));
}

template <class Number>
bool read_number(std::string_view word, Number& value, int base = 10) {
  const auto number = number_in<Number>(word, base);
  value = number.value_or(Number{});
  return number.has_value();
}

bool read_sum(std::string_view word, Sum& sum) {
  return word.size() == 16 && read_number(word.substr(0, 8), sum.first, 16) &&
         read_number(word.substr(8), sum.second, 16);
}

}  // namespace

std::string to_text(const MarkText& mark) {
  const std::string words = words_of(mark);
  std::string text = sum_of_words(words) + " " + words;
  text.resize(kSize - 1, ' ');
  return text + "\n";
}

std::optional<MarkText> parse_mark(std::string_view text) {
  const auto end = text.find_last_not_of(" \n");
  if (end == std::string_view::npos) return std::nullopt;
  text = text.substr(0, end + 1);
  std::vector<std::string_view> words;
  for (int i = 0; i < 14; ++i) {
    const auto blank = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, blank));
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  MarkText mark;
  int moved = 0, closed = 0, sums = 0;
  const bool good = words[1] == kFirstWord && read_number(words[3], mark.salts.first) &&
                    read_number(words[4], mark.salts.second) &&
                    read_number(words[5], mark.synced) && read_sum(words[6], mark.synced_sum) &&
                    read_number(words[7], mark.written) && read_sum(words[8], mark.written_sum) &&
                    read_number(words[9], moved) && read_number(words[10], closed) &&
                    read_number(words[11], sums) && read_number(words[12], mark.highest) &&
                    read_number(words[13], mark.starts);
  if (!good) return std::nullopt;
  mark.boot = words[2];
  mark.moved = moved != 0;
  mark.closed = closed != 0;
  mark.has_sums = sums != 0;
  mark.damage = text;
  if (words[0] != sum_of_words(words_of(mark))) return std::nullopt;
  return mark;
}

std::string boot_of_machine() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string line;
  std::getline(in, line);
  return line;
}

Mark::~Mark() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Mark::open() {
  if (descriptor_ >= 0) return true;
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) return false;
  const std::string folder = file_.substr(0, file_.rfind('/') + 1);
  const int above =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (above >= 0) {
    ::fsync(above);
    ::close(above);
  }
  return true;
}

bool Mark::write(bool durable) {
  must_sync_ = must_sync_ || durable;
  const std::string text = to_text(now);
  stale_ =
      !open() ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      (must_sync_ && ::fdatasync(descriptor_) != 0);
  if (!stale_) must_sync_ = false;
  return !stale_;
}

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
