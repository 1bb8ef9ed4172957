#include "store/file/mark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return error == std::errc{} && stop == word.data() + word.size();
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

}  // namespace hpcbatch::store
