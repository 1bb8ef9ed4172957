#include "slurm_commands/step_streams.hpp"

#include "slurm_commands/options.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace hpcbatch::slurm_commands {
namespace {

constexpr std::size_t kPiece = 65'536;

/// Whether there was an answer; it is empty where nothing more comes.
bool read_piece(int from, std::string& piece) {
  piece.resize(kPiece);
  const ssize_t size = ::read(from, piece.data(), piece.size());
  piece.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return size >= 0 || (errno != EINTR && errno != EAGAIN);
}

}  // namespace

std::pair<Fd, Fd> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw CommandFailed("srun: error: no more pipes can be opened (ulimit -n)");
  return {Fd(ends[0]), Fd(ends[1])};
}

LabelledLines::LabelledLines(unsigned ranks) : width_(std::to_string(ranks - 1).size()) {}

Fd LabelledLines::add(unsigned rank, int to) {
  auto [from, end] = make_pipe();
  streams_.push_back({rank, to, std::move(from), ""});
  return std::move(end);
}

void LabelledLines::add_to(std::vector<pollfd>& waits) const {
  for (const Stream& stream : streams_) waits.push_back({stream.from.get(), POLLIN, 0});
}

void LabelledLines::pass_on(const pollfd* found) {
  std::string piece;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (found[i].revents == 0 || !read_piece(streams_[i].from.get(), piece)) continue;
    write_lines(streams_[i], piece, piece.empty());
    if (piece.empty()) streams_[i].from.reset();
  }
  std::erase_if(streams_, [](const Stream& stream) { return !stream.from; });
}

void LabelledLines::write_lines(Stream& stream, std::string_view text, bool is_end) const {
  stream.begun += text;
  // Slurm ends a line that its program has not ended.
  if (is_end && !stream.begun.empty()) stream.begun += '\n';
  std::string label = std::to_string(stream.rank);
  label.insert(0, width_ - std::min(width_, label.size()), ' ');
  std::string lines;
  std::size_t begin = 0;
  for (std::size_t end = stream.begun.find('\n'); end != std::string::npos;
       end = stream.begun.find('\n', begin)) {
    lines.append(label).append(": ").append(stream.begun, begin, end + 1 - begin);
    begin = end + 1;
  }
  stream.begun.erase(0, begin);
  if (!lines.empty()) write_all(stream.to, lines);
}

Fd SharedInput::add() {
  auto [end, to] = make_pipe();
  ::fcntl(to.get(), F_SETFL, O_NONBLOCK);
  sinks_.push_back({std::move(to), ""});
  return std::move(end);
}

bool SharedInput::has_left() const {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [](const Sink& sink) { return !sink.left.empty(); });
}

void SharedInput::add_to(std::vector<pollfd>& waits) const {
  // Of what nothing is waited for poll takes no notice.
  waits.push_back({reads() ? STDIN_FILENO : -1, POLLIN, 0});
  for (const Sink& sink : sinks_)
    waits.push_back({sink.to.get(), static_cast<short>(sink.left.empty() ? 0 : POLLOUT), 0});
}

void SharedInput::pass_on(const pollfd* found) {
  for (std::size_t i = sinks_.size(); i-- > 0;) {
    // Nobody reads it any more.
    if ((found[i + 1].revents & POLLERR) != 0)
      sinks_.erase(sinks_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::string piece;
  if (found->revents != 0 && reads() && read_piece(STDIN_FILENO, piece)) {
    is_over_ = piece.empty();
    for (Sink& sink : sinks_) sink.left = piece;
  }
  write_left();
}

void SharedInput::write_left() {
  for (Sink& sink : sinks_) {
    if (sink.left.empty()) continue;
    const ssize_t size = ::write(sink.to.get(), sink.left.data(), sink.left.size());
    if (size > 0) sink.left.erase(0, static_cast<std::size_t>(size));
    if (size < 0 && errno == EPIPE) sink.left.clear();
  }
  if (is_over_ && !has_left()) sinks_.clear();
}

}  // namespace hpcbatch::slurm_commands
