#include "staging/file_exchange.hpp"

#include "plugin_host/guarded.hpp"
#include "posix/files.hpp"
#include "staging/stage_out.hpp"
#include "wire/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using Kind = wire::FileFrame::Kind;

// The program may be at work on what it was told before.
constexpr auto kSilence = 150s;
// Of a slow disk, in powers of two a second.
constexpr unsigned kReadThere = 24;
constexpr auto kBeginsFor = 60s;
constexpr std::size_t kUnderWay = 4;
constexpr std::size_t kMostSaid = 500;

Error broken(const std::string& why) {
  return {Error::Kind::Transient, "the stream of files: " + why};
}

/// Of a file as it is at its beginning, up to `length` bytes; fewer at its end.
ssize_t read_at(int file, char* room, std::size_t length, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got =
        ::pread(file, room + done, length - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

std::chrono::seconds patience_with(std::uint64_t read_there) {
  return kSilence +
         std::min<std::chrono::seconds>(std::chrono::seconds(read_there >> kReadThere), 240h);
}

FileStream::FileStream(Fd stream) : stream_(std::move(stream)), moved_at_(Steady::now()) {
  ::fcntl(stream_.get(), F_SETFL, ::fcntl(stream_.get(), F_GETFL) | O_NONBLOCK);
}

Result<void> FileStream::move(std::string_view& out, Deadline deadline, int wake) {
  const auto until = std::min<Deadline>(deadline, moved_at_ + patience_);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now());
  if (left <= 0ms) return broken("nothing moved any more");
  const int events = out.empty() ? POLLIN : POLLIN | POLLOUT;
  std::array<pollfd, 2> waits{{{stream_.get(), static_cast<short>(events), 0}, {wake, POLLIN, 0}}};
  ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
  was_woken_ = waits[1].revents != 0;
  if ((waits[0].revents & POLLOUT) != 0) {
    const ssize_t put = ::write(stream_.get(), out.data(), out.size());
    if (put > 0) {
      out.remove_prefix(static_cast<std::size_t>(put));
      moved_at_ = Steady::now();
    } else if (put < 0 && errno != EAGAIN && errno != EINTR && (waits[0].revents & POLLIN) == 0) {
      return broken(std::strerror(errno));
    }
  }
  if ((waits[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    constexpr std::size_t kMost = 2 * wire::kFilePiece;
    const ssize_t got = ::read(stream_.get(), in_.room(kMost), kMost);
    if (got == 0) return broken("the program there has ended");
    if (got < 0 && errno != EAGAIN && errno != EINTR) return broken(std::strerror(errno));
    if (got > 0) {
      in_.add(static_cast<std::size_t>(got));
      has_said_ = true;
      moved_at_ = Steady::now();
    }
  }
  return {};
}

void FileStream::order(const wire::FilesOrder& order) {
  orders_.erase(0, orders_.size() - left_.size());
  wire::append_file_frame(orders_, Kind::Order, order.SerializeAsString());
  left_ = orders_;
}

Result<void> FileStream::send(std::string_view frames, Deadline deadline) {
  moved_at_ = Steady::now();
  while (!has_said_ && !(left_.empty() && frames.empty())) {
    if (auto moved = move(left_.empty() ? frames : left_, deadline, -1); !moved) return moved;
  }
  return {};
}

Result<std::optional<wire::FileFrame>> FileStream::receive(Deadline deadline, int wake) {
  moved_at_ = Steady::now();
  while (true) {
    auto frame = in_.next();
    if (!frame) return frame.error();
    if (*frame && (*frame)->kind == Kind::Failed)
      return broken(std::string((*frame)->bytes.substr(0, kMostSaid)));
    has_said_ = *frame && !in_.is_empty();
    if (*frame) return frame;
    if (auto moved = move(left_, deadline, wake); !moved) return moved.error();
    if (was_woken_ && !has_said_) return std::optional<wire::FileFrame>();
  }
}

Result<wire::FilesReport> FileStream::receive_report(Deadline deadline, std::uint64_t read_there) {
  patience_ = patience_with(read_there);
  const auto frame = receive(deadline);
  patience_ = kSilence;
  if (!frame) return frame.error();
  wire::FilesReport report;
  const std::string_view bytes = (*frame)->bytes;
  if ((*frame)->kind != Kind::Report ||
      !report.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return broken("an answer cannot be read");
  return report;
}

namespace {

/// Works with a stream that is open, or opened now; after an error it is closed, because nobody knows
/// what else is said on it.
template <class Work>
Result<void> over_stream(FileTools& tools, const PilotProgram& program,
                         const std::string& workspace, Deadline deadline, const Work& work) {
  if (!tools.stream) {
    auto opened = open_exchange(tools, program, "files", workspace, deadline);
    if (!opened) return opened.error();
    tools.stream = std::make_unique<FileStream>(std::move(*opened));
  }
  Result<void> done = work(*tools.stream);
  if (!done) tools.stream.reset();
  // It may have been removed there.
  tools.program_is_there = done.has_value();
  return done;
}

/// Nothing where it is not what was hashed; why is found out when it is hashed again.
std::optional<std::string> content_of(const StagedFiles::Sending& file) {
  const Fd fd(open_to_read(file.path));
  if (!fd || state_of(fd.get()) != file.state) return std::nullopt;
  std::string bytes(file.state.size, '\0');
  if (read_at(fd.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()) ||
      state_of(fd.get()) != file.state)
    return std::nullopt;
  // Two changes within a tick of its file system's clock look like one.
  wire::ContentHash hash;
  hash.add(bytes);
  if (!file.key.starts_with(hash.digits())) return std::nullopt;
  return bytes;
}

StageError not_taken(const wire::FilesReport::Done& done) {
  const auto trouble = static_cast<wire::FileTrouble>(done.trouble());
  const bool is_lasting =
      trouble == wire::FileTrouble::Absent || trouble == wire::FileTrouble::Refused;
  const bool is_absent = trouble == wire::FileTrouble::Absent;
  return {!is_lasting, is_absent ? Failure::OutputMissing : Failure::StageOutFailed, done.text()};
}

void order_exchange(FileStream& stream, FileExchange& exchange) {
  for (std::size_t at = 0; at < exchange.plan.small.size(); ++at) {
    const StagedFiles::Sending& file = exchange.plan.small[at];
    auto content = content_of(file);
    if (!content) {
      exchange.outcome.changed.push_back(at);
      continue;
    }
    wire::FilesOrder::Put* put = exchange.plan.order.add_put();
    put->set_key(file.key);
    put->set_data(std::move(*content));
    put->set_executable(file.state.executable);
    exchange.outcome.put.push_back(at);
  }
  stream.order(exchange.plan.order);
  exchange.plan.order.Clear();
}

void read_exchange(FileExchange& exchange) {
  // What is none of an answer to what was asked is not heard.
  wire::FilesReport& report = exchange.outcome.report;
  const auto most_taken = static_cast<int>(exchange.plan.take_to.size());
  while (report.take_size() > most_taken) report.mutable_take()->RemoveLast();
  for (int at = 0; at < report.take_size(); ++at) {
    wire::FilesReport::Took& took = *report.mutable_take(at);
    std::optional<StageError>& error = exchange.outcome.taken.emplace_back();
    if (took.done().trouble() != 0) {
      error = not_taken(took.done());
    } else if (!took.too_large()) {
      error = write_whole_file(exchange.plan.take_to[static_cast<std::size_t>(at)], took.data(),
                               took.mode() & 0777);
      took.clear_data();
    }
  }
}

}  // namespace

ExchangeQueue::ExchangeQueue(Answered answered)
    : answered_(std::move(answered)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void ExchangeQueue::add(std::shared_ptr<FileExchange> exchange) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(exchange));
  ::eventfd_write(wake_.get(), 1);
}

std::shared_ptr<FileExchange> ExchangeQueue::take() {
  const std::lock_guard lock(mutex_);
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  if (waiting_.empty()) return nullptr;
  auto first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

void ExchangeQueue::answer(const std::shared_ptr<FileExchange>& exchange) const {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) answered_(exchange);
}

void ExchangeQueue::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

namespace {

/// As many as may be under way.
Result<void> order_more(FileStream& stream, ExchangeQueue& queue,
                        std::deque<std::shared_ptr<FileExchange>>& under_way, Deadline deadline) {
  while (under_way.size() < kUnderWay) {
    auto next = queue.take();
    if (!next) return {};
    order_exchange(stream, *next);
    under_way.push_back(std::move(next));
    if (auto sent = stream.send({}, deadline); !sent) return sent;
  }
  return {};
}

Result<void> hear_answer(const wire::FileFrame& frame, FileExchange& exchange, Deadline deadline) {
  if (frame.kind != Kind::Report || !exchange.outcome.report.ParseFromArray(
                                        frame.bytes.data(), static_cast<int>(frame.bytes.size())))
    return broken("an answer cannot be read");
  // The call may have been given up: nothing may be written here any more.
  if (Steady::now() >= deadline) return broken("the exchange did not end in time");
  read_exchange(exchange);
  return {};
}

}  // namespace

Result<void> exchange_files(FileTools& tools, const PilotProgram& program,
                            const std::string& workspace, ExchangeQueue& queue, Deadline deadline) {
  const auto begins_until = Steady::now() + kBeginsFor;
  std::deque<std::shared_ptr<FileExchange>> under_way;
  return over_stream(tools, program, workspace, deadline, [&](FileStream& stream) -> Result<void> {
    while (true) {
      const bool begins = Steady::now() < begins_until;
      if (begins) {
        if (auto ordered = order_more(stream, queue, under_way, deadline); !ordered) return ordered;
      }
      if (under_way.empty()) return {};
      const bool has_room = begins && under_way.size() < kUnderWay;
      const auto frame = stream.receive(deadline, has_room ? queue.wake() : -1);
      if (!frame) return frame.error();
      if (!*frame) continue;
      const auto exchange = std::move(under_way.front());
      under_way.pop_front();
      if (auto heard = hear_answer(**frame, *exchange, deadline); !heard) return heard;
      queue.answer(exchange);
    }
  });
}

std::string received_mark(const StagedFiles::Sending& file) {
  wire::ContentHash hash;
  const FileState& state = file.state;
  hash.add(fmt::format("{}\n{} {} {} {} {}", file.path, state.size, state.modified_ns,
                       state.changed_ns, state.device, state.inode));
  return wire::store_key(hash.digits(), wire::stored_name(file.path));
}

namespace {

/// How much of it is there already, and is what it is to be; that much is hashed afterwards.
Result<std::uint64_t> where_to_go_on(const wire::FilesReport::Partial& there, int file,
                                     std::uint64_t size, wire::ContentHash& hash) {
  if (there.size() == 0 || there.size() > size) return 0;
  wire::ContentHash beginning;
  std::string room(wire::kFilePiece, '\0');
  for (std::uint64_t done = 0; done < there.size();) {
    const auto most = std::min<std::uint64_t>(room.size(), there.size() - done);
    const ssize_t got = read_at(file, room.data(), most, done);
    if (got <= 0) return broken("the file cannot be read");
    const auto piece = std::string_view(room).substr(0, static_cast<std::size_t>(got));
    beginning.add(piece);
    hash.add(piece);
    done += piece.size();
  }
  if (beginning.digits() == there.hash()) return there.size();
  hash = wire::ContentHash();
  return 0;
}

Result<void> send_bytes(FileStream& stream, const Fd& file, std::uint64_t offset,
                        std::uint64_t size, wire::ContentHash& hash, CopyMeter& meter,
                        Deadline deadline) {
  meter.begin(offset);
  std::string frame;
  while (offset < size && !stream.has_said()) {
    const auto most = std::min<std::uint64_t>(wire::kFilePiece, size - offset);
    frame.resize(wire::kFileFrameHead + most);
    const ssize_t got = read_at(file.get(), frame.data() + wire::kFileFrameHead, most, offset);
    if (got < 0) return broken(std::string("cannot read the file: ") + std::strerror(errno));
    // It became shorter, which is found out.
    if (got < static_cast<ssize_t>(most)) return {};
    hash.add(std::string_view(frame).substr(wire::kFileFrameHead));
    wire::set_file_frame_head(frame, 0, Kind::Data);
    offset += most;
    if (auto sent = stream.send(frame, deadline); !sent) return sent;
    meter.at = offset;
  }
  return {};
}

Result<void> send_over(FileStream& stream, const Fd& file, const StagedFiles::Sending& sending,
                       LargeSent& sent, CopyMeter& meter, Deadline deadline) {
  const std::string mark = received_mark(sending);
  const std::uint64_t size = sending.state.size;
  wire::FilesOrder question;
  question.set_partial(mark);
  stream.order(question);
  const auto there = stream.receive_report(deadline, size);
  if (!there) return there.error();
  wire::ContentHash hash;
  const auto offset = where_to_go_on(there->partial(), file.get(), size, hash);
  if (!offset) return offset.error();
  wire::FilesOrder begin;
  begin.mutable_receive()->set_mark(mark);
  begin.mutable_receive()->set_offset(*offset);
  stream.order(begin);
  const bool has_key = !sending.key.empty();
  if (auto done = send_bytes(stream, file, *offset, size, hash, meter, deadline); !done)
    return done;
  const bool was_all_sent = !stream.has_said();
  if (was_all_sent) {
    const std::string digits = hash.digits();
    // Two changes within a tick of its file system's clock look like one.
    sent.is_changed =
        state_of(file.get()) != sending.state || (has_key && !sending.key.starts_with(digits));
    if (sent.is_changed) return {};
    if (!has_key) sent.hash = digits;
    wire::FilesOrder end;
    wire::FilesOrder::Known& adopt = *end.add_adopt();
    adopt.set_key(has_key ? sending.key : wire::store_key(digits, wire::stored_name(sending.path)));
    adopt.set_size(size);
    adopt.set_executable(sending.state.executable);
    adopt.set_received(mark);
    stream.order(end);
  }
  const auto report = stream.receive_report(deadline);
  if (!report) return report.error();
  // Whether the adoption was asked for as well is not known: what else is said there is not heard.
  if (report->moved().trouble() != 0) {
    sent.done = report->moved();
    return broken(sent.done.text());
  }
  if (!was_all_sent || report->adopt_size() != 1) return broken("an answer cannot be read");
  sent.done = report->adopt(0);
  return {};
}

}  // namespace

LargeSent send_large(FileTools& tools, const PilotProgram& program, const std::string& workspace,
                     const StagedFiles::Sending& file, Deadline deadline) {
  LargeSent sent;
  const Fd fd(open_to_read(file.path));
  sent.is_changed = !fd || state_of(fd.get()) != file.state;
  if (sent.is_changed) return sent;
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  sent.result = over_stream(tools, program, workspace, deadline, [&](FileStream& stream) {
    return send_over(stream, fd, file, sent, tools.meter, deadline);
  });
  return sent;
}

namespace {

StageError not_written(const std::string& path, int error) {
  const bool may_pass = error == ENOSPC || error == EDQUOT || error == EIO || error == ESTALE;
  return {may_pass, Failure::StageOutFailed,
          fmt::format("cannot write {} on this machine: {}", path, std::strerror(error))};
}

/// All of it; 0, or why not.
int write_at(const Fd& to, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(to.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return 0;
}

/// As much of it as is there stays for the next try.
Result<void> receive_bytes(FileStream& stream, const Fd& to, std::uint64_t offset,
                           const LargeFetch& file, LargeFetched& fetched, CopyMeter& meter,
                           Deadline deadline) {
  meter.begin(offset);
  constexpr std::uint64_t kWrittenBehind = std::uint64_t{8} << 20;
  std::uint64_t begun = offset;
  while (true) {
    const auto frame = stream.receive(deadline);
    if (!frame) return frame.error();
    const std::string_view bytes = (*frame)->bytes;
    if ((*frame)->kind == Kind::Report) {
      wire::FilesReport ended;
      if (!ended.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return broken("an answer cannot be read");
      if (ended.moved().trouble() != 0)
        fetched.error = not_taken(ended.moved());
      else if (offset != file.size)
        return broken("not all of a file came");
      return {};
    }
    if ((*frame)->kind != Kind::Data || bytes.size() > file.size - offset)
      return broken("more came than was asked for");
    if (const int error = write_at(to, bytes, offset); error != 0) {
      fetched.error = not_written(file.here, error);
      return broken(fetched.error->text);
    }
    offset += bytes.size();
    meter.at = offset;
    if (offset - begun < kWrittenBehind) continue;
    ::sync_file_range(to.get(), static_cast<off_t>(begun), static_cast<off_t>(offset - begun),
                      SYNC_FILE_RANGE_WRITE);
    begun = offset;
  }
}

Result<void> fetch_over(FileStream& stream, const Fd& to, const LargeFetch& file,
                        LargeFetched& fetched, CopyMeter& meter, Deadline deadline) {
  struct stat facts {};
  if (::fstat(to.get(), &facts) != 0) return broken(std::strerror(errno));
  wire::FilesReport::Partial here;
  here.set_size(std::min(static_cast<std::uint64_t>(facts.st_size), file.size));
  wire::FilesOrder wanted;
  wanted.mutable_give()->set_path(file.there);
  wanted.mutable_give()->set_offset(here.size());
  wanted.mutable_give()->set_size(file.size);
  wanted.mutable_give()->set_modified_ns(file.modified_ns);
  stream.order(wanted);
  const auto begun = stream.receive_report(deadline, here.size());
  if (!begun) return begun.error();
  if (begun->moved().trouble() != 0) {
    fetched.error = not_taken(begun->moved());
    return {};
  }
  here.set_hash(begun->partial().hash());
  wire::ContentHash unused;
  const auto offset = where_to_go_on(here, to.get(), file.size, unused);
  if (!offset) return offset.error();
  // All of it anew, by the next try, where what lies here is not how the file begins.
  if (::ftruncate(to.get(), static_cast<off_t>(*offset)) != 0) return broken(std::strerror(errno));
  if (*offset != here.size()) return broken("what had come of a file before is not how it begins");
  return receive_bytes(stream, to, *offset, file, fetched, meter, deadline);
}

}  // namespace

LargeFetched fetch_large(FileTools& tools, const PilotProgram& program,
                         const std::string& workspace, const LargeFetch& file, Deadline deadline) {
  LargeFetched fetched;
  fetched.error = make_folder_of(file.here);
  if (fetched.error) return fetched;
  wire::ContentHash mark;
  mark.add(fmt::format("{}\n{} {}", file.there, file.size, file.modified_ns));
  const std::string aside = (std::filesystem::path(file.here).parent_path() /
                             (".hpcbatch-part-" + mark.digits().substr(0, 24)))
                                .string();
  const RegularFile to = open_regular(AT_FDCWD, aside, O_RDWR | O_CREAT);
  if (!to) {
    fetched.error = not_written(aside, to.error);
    return fetched;
  }
  fetched.result = over_stream(tools, program, workspace, deadline, [&](FileStream& stream) {
    return fetch_over(stream, to.fd, file, fetched, tools.meter, deadline);
  });
  if (!fetched.result || fetched.error) return fetched;
  // The call may have been given up: nothing may be written here any more.
  if (Steady::now() >= deadline) {
    fetched.result = broken("a file did not come in time");
    return fetched;
  }
  if (::fchmod(to.fd.get(), file.mode) != 0 || ::rename(aside.c_str(), file.here.c_str()) != 0)
    fetched.error = not_written(file.here, errno);
  return fetched;
}

}  // namespace hpcbatch
