#include "pilot/tasks/streams.hpp"

#include "wire/log_pack.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kRecord = std::size_t{64} << 10;
constexpr std::size_t kTail = std::size_t{64} << 10;  // what ended a task stands at its end
constexpr std::size_t kAtOnce = std::size_t{256} << 10;

}  // namespace

Capture::Capture(Loop& loop, PackFile& pack, unsigned stream)
    : loop_(loop), pack_(pack), stream_(stream) {}

Capture::~Capture() {
  if (reading_) loop_.forget(reading_.get());
}

bool Capture::make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  reading_ = Fd(ends[0]);
  writing_ = Fd(ends[1]);
  ::fcntl(reading_.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(reading_.get(), EPOLLIN, [this](std::uint32_t) {
    pack_.is_full() ? pause() : static_cast<void>(take_some());
  });
  return true;
}

void Capture::pause() {
  if (std::exchange(paused_, true)) return;
  loop_.change(reading_.get(), 0);
  pack_.when_it_takes([this] {
    paused_ = false;
    loop_.change(reading_.get(), EPOLLIN);
  });
}

int Capture::begin(const AttemptId& id, std::uint64_t limit) {
  if (!reading_ && !make_pipe()) return -1;
  // The task before may have made its end of the pipe non-blocking, and with it ours, which is the
  // same.
  ::fcntl(writing_.get(), F_SETFL, 0);
  id_ = id;
  active_ = true;
  limit_ = limit;
  base_ = 0;
  buffer_.clear();
  pieces_.clear();
  last_place_ = 0;
  is_beyond_ = false;
  tail_.clear();
  left_out_ = 0;
  lost_ = false;
  return writing_.get();
}

void Capture::end() {
  if (!active_) return;
  while (take_some()) {
  }
  if (is_beyond_) add_tail();
  flush();
  active_ = false;
  buffer_.shrink_to_fit();
}

bool Capture::take_some() {
  static std::array<char, kRecord> room;
  for (std::size_t taken = 0; taken < kAtOnce;) {
    const ssize_t got = ::read(reading_.get(), room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    taken += static_cast<std::size_t>(got);
    if (active_) keep(std::string_view(room.data(), static_cast<std::size_t>(got)));
  }
  return true;
}

void Capture::keep(std::string_view bytes) {
  if (lost_) return;
  if (!is_beyond_) {
    const std::uint64_t room = limit_ == 0 ? bytes.size() : limit_ - kept();
    const auto fits = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()));
    buffer_.append(bytes.substr(0, fits));
    bytes.remove_prefix(fits);
    is_beyond_ = !bytes.empty();
  }
  if (is_beyond_) keep_beyond_limit(bytes);
  if (buffer_.size() >= kRecord) flush();
}

void Capture::keep_beyond_limit(std::string_view bytes) {
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(kTail, limit_));
  tail_.append(bytes);
  if (tail_.size() < 2 * most) return;
  if (left_out_ == 0) {
    buffer_ += "\n[hpcbatch: the limit of " + std::to_string(limit_) +
               " bytes is reached; what follows is left out up to its end]\n";
  }
  left_out_ += tail_.size() - most;
  tail_.erase(0, tail_.size() - most);
}

void Capture::add_tail() {
  if (left_out_ != 0) {
    buffer_ +=
        "[hpcbatch: " + std::to_string(left_out_) + " bytes are left out; this is the end]\n";
  }
  buffer_ += tail_;
  tail_ = std::string();
}

void Capture::flush() {
  for (std::size_t at = 0; at < buffer_.size();) {
    const std::string_view bytes = std::string_view(buffer_).substr(at, wire::kLargestLogRecord);
    const std::uint64_t place = pack_.append({.array = id_.array,
                                              .index = id_.index,
                                              .number = id_.number,
                                              .epoch = id_.epoch,
                                              .stream = stream_,
                                              .length = 0,
                                              .offset = base_,
                                              .previous = last_place_},
                                             bytes);
    if (place == 0) {
      lost_ = true;
      break;
    }
    last_place_ = place;
    pieces_.push_back({base_, place - 1, static_cast<std::uint32_t>(bytes.size())});
    base_ += bytes.size();
    at += bytes.size();
  }
  buffer_.clear();
}

std::string Capture::read(std::uint64_t offset, std::size_t limit) const {
  if (offset >= base_) {
    const auto skip = static_cast<std::size_t>(offset - base_);
    return skip >= buffer_.size() ? std::string() : buffer_.substr(skip, limit);
  }
  const auto behind = std::upper_bound(
      pieces_.begin(), pieces_.end(), offset,
      [](std::uint64_t wanted, const Piece& piece) { return wanted < piece.offset; });
  const Piece& piece = *std::prev(behind);
  const std::uint64_t skip = offset - piece.offset;
  const std::size_t length =
      std::min<std::size_t>(limit, static_cast<std::size_t>(piece.length - skip));
  return pack_.read(piece.place + wire::kLogHeaderSize + skip, length);
}

StreamedInput::~StreamedInput() {
  close();
}

Fd StreamedInput::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  writing_ = Fd(ends[1]);
  ::fcntl(writing_.get(), F_SETFL, O_NONBLOCK);
  struct stat info {};
  if (::fstat(writing_.get(), &info) == 0) pipe_ = info.st_ino;
  return Fd(ends[0]);
}

void StreamedInput::give(std::string_view bytes, std::uint64_t offset, bool end) {
  // A task that reads no more gets no more; nobody is asked to send it.
  if (!writing_ || ends_ || offset > given_) return;
  bytes.remove_prefix(std::min<std::uint64_t>(given_ - offset, bytes.size()));
  asked_ = true;
  ends_ = end;
  given_ += bytes.size();
  waiting_ += bytes;
  push();
}

void StreamedInput::asked() {
  asked_ = true;
  want_again();
}

void StreamedInput::want_again() const {
  if (asked_ && waiting_.empty() && (writing_ || ends_)) wanted_(given_, ends_);
}

void StreamedInput::push() {
  while (!waiting_.empty()) {
    const ssize_t count = ::write(writing_.get(), waiting_.data(), waiting_.size());
    if (count >= 0) {
      waiting_.erase(0, static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (!watched_) loop_.watch(writing_.get(), EPOLLOUT, [this](std::uint32_t) { push(); });
      watched_ = true;
      return;
    } else if (errno != EINTR) {
      close();
      return;
    }
  }
  if (ends_) {
    close();
  } else if (watched_) {
    loop_.forget(writing_.get());
    watched_ = false;
  }
  wanted_(given_, ends_);
}

void StreamedInput::close() {
  if (watched_) loop_.forget(writing_.get());
  watched_ = false;
  writing_.reset();
  waiting_.clear();
}

namespace {

constexpr std::size_t kLargestChunk = std::size_t{64} << 10;

}  // namespace

void Followers::follow(const AttemptId& id, std::uint64_t out_offset, std::uint64_t err_offset) {
  followed_[id].sent = {out_offset, err_offset};
}

void Followers::ended(const AttemptId& id, const wire::LogPlace& log) {
  const auto at = followed_.find(id);
  if (at != followed_.end()) at->second.log = log;
}

std::string Followers::read(const AttemptId& id, const Followed& followed, unsigned stream,
                            std::size_t limit) {
  const std::uint64_t from = followed.sent[stream - 1];
  if (!followed.log) return read_(id, stream, from, limit).value_or(std::string());
  wire::Attempt attempt;
  to_wire(id, &attempt);
  const auto read_pack = [this](std::uint64_t place, std::size_t length) -> Result<std::string> {
    return pack_.read(place, length);
  };
  const std::uint64_t last = stream == 1 ? followed.log->last_out() : followed.log->last_err();
  const auto text = wire::read_log(read_pack, attempt, stream, last, from, limit);
  return text ? *text : std::string();
}

bool Followers::send(std::size_t room, const Send& send) {
  bool more = false;
  for (auto at = followed_.begin(); at != followed_.end();) {
    auto& [id, followed] = *at;
    bool all = true;
    for (const unsigned stream : {1U, 2U}) {
      for (;;) {
        if (room == 0) {
          all = false;
          more = true;
          break;
        }
        std::string bytes = read(id, followed, stream, std::min(room, kLargestChunk));
        if (bytes.empty()) break;
        wire::Chunk chunk;
        to_wire(id, chunk.mutable_attempt());
        chunk.set_stream(stream);
        chunk.set_offset(followed.sent[stream - 1]);
        followed.sent[stream - 1] += bytes.size();
        room -= bytes.size();
        chunk.set_data(std::move(bytes));
        send(std::move(chunk));
      }
    }
    if (!all || !followed.log) {
      ++at;
      continue;
    }
    wire::Chunk last;
    to_wire(id, last.mutable_attempt());
    last.set_end(true);
    send(std::move(last));
    at = followed_.erase(at);
  }
  return more;
}

}  // namespace hpcbatch::pilot
