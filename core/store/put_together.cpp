#include "store/put_together.hpp"

#include "store/file/log_file.hpp"
#include "store/file/mark.hpp"
#include "store/file/page_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlocksNamed = 20;
constexpr std::uint64_t kPagesBetweenWords = 4096;

constexpr std::uint32_t kMostPages = 1U << 30;

/// A database grows by pages that are written; what was free when it grew need not have been. A
/// count beyond that is damage, and to believe it would fill the disk.
std::uint64_t most_pages(std::uint64_t lie_there, std::uint64_t in_the_log) {
  return 2 * (lie_there + in_the_log) + 4096;
}

std::uint64_t pages_in(const std::string& file) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(file, none);
  return none ? 0 : (size + kPageSize - 1) / kPageSize;
}

/// The newest of each page that finished commits of the log hold.  A frame whose sum is wrong is
/// known by what follows it; behind frames whose heads cannot be read the log goes on with the first
/// whose own sum the next one goes on from.
class Log {
 public:
  Log(std::string_view bytes, const std::optional<MarkText>& mark, std::uint64_t lie_there,
      StoreReport& report)
      : log_(bytes), report_(report), most_(most_pages(lie_there, log_.frames())) {
    if (log_.frames() == 0) return;
    salts_ = log_.has_header() ? log_.salts() : salts_of_frames();
    if (mark && mark->salts == salts_ && mark->written <= log_.frames()) mark_ = mark;
    find_end();
    read();
  }
  std::map<std::uint32_t, std::string> pages;
  std::uint32_t database_pages{0};
  std::uint64_t most() const { return most_; }

 private:
  /// As it stands, or as it was put right.
  struct Block {
    LogFrame frame;
    std::string body;
    bool has_head{false};
    bool good{false};
    bool is_fault{false};  ///< what goes on behind a gap is no fault of its own
  };
  static bool is_page(std::uint32_t number) { return number != 0 && number <= kMostPages; }

  Salts salts_of_frames() const {
    for (std::size_t at = 1; at < log_.frames(); ++at) {
      const LogFrame frame = log_.frame(at);
      if (frame.page != 0 && frame.sum == log_.sum_behind(log_.frame(at - 1).sum, at))
        return frame.salts;
    }
    return log_.frame(0).salts;
  }
  /// Old frames behind the end of this log have other salts, and sums that do not fit it.
  void find_end() {
    for (end_ = log_.frames(); end_ > 1 && !is_certain(end_ - 1) && !goes_on_at(end_ - 1);) --end_;
  }
  void read() {
    std::optional<Sum> before;  // what the next frame's sum goes on from, where that is known
    if (log_.has_header() || log_.frame(0).sum == log_.sum_behind(log_.seed(), 0))
      before = log_.seed();
    for (std::size_t at = 0; at < log_.frames(); ++at) {
      Block block = block_at(at, before);
      if (!block.good && at >= end_) break;  // the torn end
      if (block.is_fault) tell(at, block);
      if (block.good || block.has_head) keep(std::move(block));
    }
  }
  /// `before`: what its sum goes on from, where that is known; afterwards the same for the next one.
  Block block_at(std::size_t at, std::optional<Sum>& before) const {
    Block block{log_.frame(at), std::string(log_.page(at))};
    block.has_head = block.frame.salts == salts_ && is_page(block.frame.page);
    if (before) {
      const Sum sum = log_.sum_behind(*before, at);
      block.is_fault = block.frame.sum != sum;
      if (block.is_fault && continues(sum, at)) {
        block.good = true;  // it is the sum that is wrong
        before = sum;
        return block;
      }
      block.good = !block.is_fault || mend(*before, at, block.frame, block.body);
    } else {
      block.good = block.has_head && (is_certain(at) || goes_on_at(at + 1));
      block.is_fault = !block.good;
    }
    before = block.good || block.has_head ? std::optional(block.frame.sum) : std::nullopt;
    return block;
  }
  void keep(Block block) {
    if (!is_page(block.frame.page)) return;
    if (block.good) open_[block.frame.page] = std::move(block.body);
    if (block.frame.pages != 0) commit(block.frame.pages);
  }
  void commit(std::uint32_t all) {
    // What a page was before is no lie: rows of it may be missing, or of a time that has passed.
    for (auto& [number, bytes] : open_) pages[number] = std::move(bytes);
    open_.clear();
    if (all <= most_) {
      database_pages = all;
    } else {
      report_.faults.push_back(
          fmt::format("the log says that the database has {} pages, which cannot be", all));
    }
  }
  bool continues(const Sum& sum, std::size_t at) const {
    return at + 1 < log_.frames() && log_.frame(at + 1).sum == log_.sum_behind(sum, at + 1);
  }
  /// Whether this one's sum goes on from what stands in the one before.
  bool goes_on_at(std::size_t at) const {
    return at > 0 && at < log_.frames() && log_.frame(at).salts == salts_ &&
           log_.frame(at).sum == log_.sum_behind(log_.frame(at - 1).sum, at);
  }
  /// The last one that the engine wrote, as its mark says.
  bool is_certain(std::size_t at) const {
    return mark_ && mark_->written == at + 1 && mark_->written_sum == log_.frame(at).sum;
  }
  /// The first 8 bytes of its head and the page count for its sum.
  bool mend(const Sum& before, std::size_t at, LogFrame& frame, std::string& body) const {
    std::string both = log_.summed(at);
    const auto bit = changed_bit(both, log_.sum_behind(before, at), frame.sum, log_.words());
    if (!bit) return false;
    both[*bit / 8] = static_cast<char>(both[*bit / 8] ^ (1 << (*bit % 8)));
    frame.page = big_endian(both.data());
    frame.pages = big_endian(both.data() + 4);
    body = both.substr(8);
    return true;
  }
  void tell(std::size_t at, const Block& block) {
    const bool is_known = block.good || block.has_head;
    report_.faults.push_back(fmt::format(
        "block {} of the log, {} of the database, is bad{}", at + 1,
        is_known ? fmt::format("page {}", block.frame.page) : "nobody knows which page",
        block.good ? ", and was put right" : "; an older one is taken, where there is one"));
    report_.mended += block.good ? 1 : 0;
  }

  LogView log_;
  StoreReport& report_;
  std::uint64_t most_;  ///< pages that the database may have
  Salts salts_;
  std::optional<MarkText> mark_;
  std::size_t end_{0};  ///< behind the last frame that is certainly this log's
  std::map<std::uint32_t, std::string> open_;  ///< of a commit that is not finished
};

void spoil(std::string& page, std::uint64_t number) {
  put_sum(page, number);
  page.back() = static_cast<char>(page.back() ^ 1);
}

/// Of a page that has lost a part of its sum alone, where what is left of it is right.
bool complete_sum(std::string& page, std::size_t came, std::uint64_t number) {
  if (came == kPageSize || came < kPageSize - kSumSize) return false;
  std::string whole = page;
  put_sum(whole, number);
  if (whole.compare(0, came, page, 0, came) != 0) return false;
  page = std::move(whole);
  return true;
}

/// Where the file has lost its end, its head still says how long it was; SQLite takes nothing of a
/// file that is shorter than that.
std::uint64_t pages_of(const std::string& file, const Log& log, bool has_sums,
                       StoreReport& report) {
  if (log.database_pages != 0) return log.database_pages;
  if (!fs::exists(file)) return 0;
  const std::uint64_t lie_there = pages_in(file);
  std::string head(kPageSize, '\0');
  std::ifstream(file, std::ios::binary)
      .read(head.data(), static_cast<std::streamsize>(head.size()));
  // As SQLite decides whether to believe it (sqlite.org/fileformat2.html, 1.3.7).
  const bool is_right =
      has_sums && has_its_sum(head, 1) && std::equal(&head[24], &head[28], &head[92]);
  const std::uint64_t said = is_right ? big_endian(&head[28]) : lie_there;
  const std::uint64_t were = said <= log.most() ? said : lie_there;
  if (said > log.most())
    report.faults.push_back(
        fmt::format("its head says that it has {} pages, which cannot be", said));
  if (were > lie_there)
    report.faults.push_back(
        fmt::format("of {} pages the file has lost the last {}", were, were - lie_there));
  return std::max(lie_there, were);
}

}  // namespace

void put_together(const std::string& file, const std::string& to, bool has_sums,
                  StoreReport& report, const SalvageSaid& said) {
  const std::string log_bytes = read_whole(file + "-wal");
  const std::size_t faults_before = report.faults.size();
  Log log(log_bytes, parse_mark(read_whole(file + "-mark")), pages_in(file), report);
  std::ifstream in(file, std::ios::binary);
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  const std::uint64_t pages = pages_of(file, log, has_sums, report);
  std::string page(kPageSize, '\0');
  for (std::uint64_t number = 1; number <= pages; ++number) {
    if (number % kPagesBetweenWords == 0 && said) said("page", number, pages);
    page.assign(kPageSize, '\0');
    in.read(page.data(), static_cast<std::streamsize>(kPageSize));
    const auto came = static_cast<std::size_t>(in.gcount());
    in.clear();
    bool good = true;
    if (const auto newer = log.pages.find(static_cast<std::uint32_t>(number));
        newer != log.pages.end()) {
      page = newer->second;
    } else if (has_sums && !has_its_sum(page, number)) {
      good = complete_sum(page, came, number) || mend_page(page, number);
      report.faults.push_back(fmt::format("page {} of the database is bad{}", number,
                                          good ? ", and was put right" : ""));
      report.mended += good ? 1 : 0;
    }
    if (number == 1) page[18] = page[19] = 1;
    if (has_sums) put_sum(page, number);
    if (has_sums && !good) spoil(page, number);
    out.write(page.data(), static_cast<std::streamsize>(kPageSize));
  }
  if (report.faults.size() - faults_before > kBlocksNamed) {
    const std::size_t more = report.faults.size() - faults_before - kBlocksNamed;
    report.faults.resize(faults_before + kBlocksNamed);
    report.faults.push_back(fmt::format("{} more blocks are bad", more));
  }
  out.flush();
  if (!out) throw std::runtime_error(fmt::format("cannot write {}; is there room?", to));
}

}  // namespace hpcbatch::store
