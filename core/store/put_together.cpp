#include "store/put_together.hpp"

#include "store/file/log_file.hpp"
#include "store/file/page_sums.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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

}  // namespace hpcbatch::store
