#include "store/file/log_file.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::store {
namespace {

constexpr std::uint32_t kMagic = 0x377F0682;  // and one more: sums of big-endian words
constexpr std::uint32_t kPage = 4096;         // of all stores that we have made

LogFrame frame_at(const char* bytes) {
  return {big_endian(bytes),
          big_endian(bytes + 4),
          {big_endian(bytes + 8), big_endian(bytes + 12)},
          {big_endian(bytes + 16), big_endian(bytes + 20)}};
}

}  // namespace

LogView::LogView(std::string_view bytes) : bytes_(bytes) {
  if (bytes.size() < kLogHeader) return;
  const char* head = bytes.data();
  const std::uint32_t magic = big_endian(head);
  words_ = magic == kMagic + 1 ? Words::Big : Words::Little;
  salts_ = {big_endian(head + 16), big_endian(head + 20)};
  seed_ = {big_endian(head + 24), big_endian(head + 28)};
  has_header_ = (magic == kMagic || magic == kMagic + 1) && big_endian(head + 8) == kPage &&
                seed_ == sum_of({}, bytes.substr(0, 24), words_);
  frames_ = (bytes.size() - kLogHeader) / (kFrameHeader + kPage);
}

const char* LogView::start_of(std::size_t at) const {
  return bytes_.data() + kLogHeader + at * (kFrameHeader + kPage);
}

LogFrame LogView::frame(std::size_t at) const {
  return frame_at(start_of(at));
}

std::string_view LogView::page(std::size_t at) const {
  return {start_of(at) + kFrameHeader, kPage};
}

std::string LogView::summed(std::size_t at) const {
  return std::string(start_of(at), 8) += page(at);
}

Sum LogView::sum_behind(Sum before, std::size_t at) const {
  return sum_of(sum_of(before, {start_of(at), 8}, words_), page(at), words_);
}

LogState state_of_log(std::string_view bytes) {
  const LogView log(bytes);
  LogState state{.bytes = bytes.size(), .has_header = log.has_header(), .salts = log.salts()};
  std::size_t at = 0;
  bool first_page_open = false;
  if (log.has_header()) {
    Sum sum = log.seed();
    for (; at < log.frames(); ++at) {
      const LogFrame frame = log.frame(at);
      sum = log.sum_behind(sum, at);
      if (frame.salts != log.salts() || frame.sum != sum || frame.page == 0) break;
      state.sums.push_back(sum);
      first_page_open = first_page_open || frame.page == 1;
      if (frame.pages != 0) state.has_first_page = first_page_open;
    }
  }
  // The sums go on from what stands in a bad frame, if it is not that which is bad.  Without a
  // header, frames that have the same salts are a log's.
  for (at += 1; at < log.frames(); ++at) {
    const LogFrame frame = log.frame(at);
    const LogFrame before = log.frame(at - 1);
    if (log.has_header() ? frame.salts != log.salts() : frame.salts != before.salts) continue;
    if (frame.page != 0 && frame.sum == log.sum_behind(before.sum, at)) ++state.behind;
  }
  return state;
}

std::optional<LogFrame> read_frame(int descriptor, std::uint64_t number) {
  if (number == 0) return std::nullopt;
  char bytes[kFrameHeader];
  const auto at = static_cast<off_t>(kLogHeader + (number - 1) * (kFrameHeader + kPage));
  if (::pread(descriptor, bytes, sizeof bytes, at) != static_cast<ssize_t>(sizeof bytes))
    return std::nullopt;
  return frame_at(bytes);
}

std::string read_whole(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return {};
    throw std::runtime_error("cannot read " + file + ": " + std::strerror(errno));
  }
  struct stat facts {};
  ::fstat(descriptor, &facts);
  std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t size = ::read(descriptor, bytes.data() + have, bytes.size() - have);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      const int why = errno;
      ::close(descriptor);
      throw std::runtime_error("cannot read " + file + ": " + std::strerror(why));
    }
    if (size == 0) break;
    have += static_cast<std::size_t>(size);
  }
  ::close(descriptor);
  bytes.resize(have);
  return bytes;
}

}  // namespace hpcbatch::store
