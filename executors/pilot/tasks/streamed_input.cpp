#include "pilot/tasks/streamed_input.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
