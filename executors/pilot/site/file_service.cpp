#include "pilot/site/file_service.hpp"

#include "pilot/base/files.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/site/file_store.hpp"
#include "posix/files.hpp"
#include "wire/checksum.hpp"
#include "wire/file_store.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

// Files that are open at a time.
constexpr int kPutTogether = 200;

using wire::FileTrouble;

/// What is left of the file system that holds the workspace, for who is not root.
struct Free {
  std::uint64_t bytes{UINT64_MAX};
  std::uint64_t files{UINT64_MAX};
};

Free free_in(int workspace) {
  struct statvfs facts {};
  // A file system that does not count has no end.
  if (::fstatvfs(workspace, &facts) != 0 || facts.f_blocks == 0) return {};
  return {static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize,
          facts.f_files == 0 ? UINT64_MAX : static_cast<std::uint64_t>(facts.f_favail)};
}

void answer(wire::FilesReport::Done& done, const FileOutcome& outcome) {
  if (!outcome) return;
  done.set_trouble(static_cast<std::uint32_t>(outcome->kind));
  done.set_text(outcome->text);
}

/// What was wanted and what there is, where there was no room.
FileOutcome with_room(FileOutcome outcome, std::uint64_t wanted, int workspace) {
  if (outcome && (outcome->kind == FileTrouble::DiskFull || outcome->kind == FileTrouble::Quota)) {
    const Free room = free_in(workspace);
    outcome->text += ": " + std::to_string(wanted) + " bytes wanted, " +
                     std::to_string(room.bytes) + " bytes and room for " +
                     std::to_string(room.files) + " files free there";
  }
  return outcome;
}

FileOutcome drop(int workspace, const std::string& path) {
  if (!wire::may_be_dropped(path))
    return FileRefusal{FileTrouble::Refused,
                       "cannot remove " + shown(path) + ": it is not below files or out"};
  const Step step = last_step(path);
  const auto folder = enter(workspace, step.folder);
  if (const auto* refusal = std::get_if<FileRefusal>(&folder))
    return refusal->kind == FileTrouble::Absent ? FileOutcome{} : *refusal;
  const int in = std::get<Fd>(folder).get();
  if (!remove_entry(in, step.name)) return refused("remove " + shown(path), errno);
  // The folder of a content goes with the last of its names.
  if (!wire::key_of_place(path).empty())
    ::unlinkat(in, ("../" + last_step(step.folder).name).c_str(), AT_REMOVEDIR);
  return {};
}

std::int64_t modified_ns(const struct stat& facts) {
  return std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

bool is_still(int file, std::uint64_t size, std::int64_t modified) {
  struct stat facts {};
  return ::fstat(file, &facts) == 0 && static_cast<std::uint64_t>(facts.st_size) == size &&
         modified_ns(facts) == modified;
}

/// A file below the workspace that may be read.
std::variant<RegularFile, FileRefusal> open_below(int workspace, const std::string& path) {
  if (!wire::is_plain_path(path))
    return FileRefusal{FileTrouble::Refused,
                       "cannot read " + shown(path) + ": it is not below the workspace"};
  const Step step = last_step(path);
  const auto folder = enter(workspace, step.folder);
  if (const auto* refusal = std::get_if<FileRefusal>(&folder)) return *refusal;
  RegularFile file = open_regular(std::get<Fd>(folder).get(), step.name);
  if (!file) return refused("read " + shown(path), file.error);
  return file;
}

/// False where it is left for the next exchange.
bool take(int workspace, const std::string& path, const wire::FilesOrder& order,
          std::uint64_t& bytes, wire::FilesReport& report) {
  const std::string what = "read " + shown(path);
  wire::FilesReport::Took took;
  const auto refuse = [&](const FileRefusal& refusal) {
    answer(*took.mutable_done(), refusal);
    *report.add_take() = took;
    return true;
  };
  const auto opened = open_below(workspace, path);
  if (const auto* refusal = std::get_if<FileRefusal>(&opened)) return refuse(*refusal);
  const auto& file = std::get<RegularFile>(opened);
  const auto& [fd, facts, error] = file;
  const std::uint64_t size = file.size();
  took.set_size(size);
  took.set_mode(facts.st_mode & 0777);
  took.set_modified_ns(modified_ns(facts));
  took.set_too_large(size > order.largest_taken());
  if (!took.too_large()) {
    if (bytes > 0 && bytes + size > order.most_bytes()) return false;
    std::string data(size, '\0');
    std::size_t done = 0;
    while (done < size) {
      const ssize_t got = ::read(fd.get(), data.data() + done, size - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return refuse(refused(what, errno));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    if (done < size || !is_still(fd.get(), size, took.modified_ns()))
      return refuse({FileTrouble::Other, "cannot " + what + ": it was changed while it was read"});
    bytes += size;
    took.set_data(std::move(data));
  }
  *report.add_take() = std::move(took);
  return true;
}

void serve_store(FileStore& store, int workspace, const wire::FilesOrder& order,
                 const std::function<bool()>& still_time, wire::FilesReport& report) {
  for (const auto& file : order.have()) {
    if (!still_time()) return;
    answer(*report.add_have(), store.have(file));
  }
  for (const auto& file : order.adopt()) {
    if (!still_time()) return;
    answer(*report.add_adopt(), with_room(store.adopt(file), 0, workspace));
  }
  for (int at = 0; at < order.put_size() && still_time(); at += kPutTogether) {
    const int end = std::min(at + kPutTogether, order.put_size());
    const auto outcomes = store.put(order.put(), at, end);
    for (int i = at; i < end; ++i)
      answer(*report.add_put(), with_room(outcomes[static_cast<std::size_t>(i - at)],
                                          order.put(i).data().size(), workspace));
  }
}

/// The store cannot even be opened: all that is for it is refused alike.
void refuse_store(const FileOutcome& why, const wire::FilesOrder& order,
                  wire::FilesReport& report) {
  for (int i = 0; i < order.have_size(); ++i) answer(*report.add_have(), why);
  for (int i = 0; i < order.adopt_size(); ++i) answer(*report.add_adopt(), why);
  for (int i = 0; i < order.put_size(); ++i) answer(*report.add_put(), why);
}

}  // namespace

Result<wire::FilesReport> exchange_files(const std::string& workspace,
                                         const wire::FilesOrder& order) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(order.limit_ms());
  const auto still_time = [&] {
    return order.limit_ms() == 0 || std::chrono::steady_clock::now() < until;
  };
  const Fd root(::open(workspace.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    const FileRefusal refusal = refused("open the workspace " + workspace, errno);
    return Error{Error::Kind::Transient, refusal.text};
  }
  wire::FilesReport report;
  auto store = FileStore::open(root.get());
  auto* open_store = std::get_if<FileStore>(&store);
  if (open_store && !open_store->lock(still_time))
    return Error{Error::Kind::Transient, "an exchange before this one is still at work"};
  for (const std::string& path : order.drop()) {
    if (!still_time()) break;
    answer(*report.add_drop(), drop(root.get(), path));
  }
  if (open_store) {
    serve_store(*open_store, root.get(), order, still_time, report);
  } else {
    refuse_store(with_room(std::get<FileRefusal>(store), 0, root.get()), order, report);
  }
  std::uint64_t bytes = 0;
  for (const std::string& path : order.take()) {
    if (!still_time() || !take(root.get(), path, order, bytes, report)) break;
  }
  if (order.list_most() > 0 && open_store) {
    if (order.list_after().empty()) open_store->forget_stale();
    report.set_list_ended(open_store->list(order.list_after(), order.list_most(), still_time,
                                           *report.mutable_entries()));
  } else {
    report.set_list_ended(!open_store);
  }
  const Free room = free_in(root.get());
  report.set_free_bytes(room.bytes);
  report.set_free_files(room.files);
  return report;
}

namespace {

constexpr std::uint64_t kWrittenBehind = std::uint64_t{8} << 20;

/// Of its first bytes; empty where there are not so many.
std::string hash_of(int file, std::uint64_t size) {
  wire::ContentHash hash;
  std::string room(std::min<std::uint64_t>(wire::kFilePiece, size), '\0');
  for (std::uint64_t done = 0; done < size;) {
    const auto most = std::min<std::uint64_t>(room.size(), size - done);
    const ssize_t got = ::pread(file, room.data(), most, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    hash.add(std::string_view(room).substr(0, static_cast<std::size_t>(got)));
    done += static_cast<std::uint64_t>(got);
  }
  return hash.digits();
}

/// One after another, what the engine's frames ask for.
class FileService {
 public:
  FileService(std::string workspace, int in, int out)
      : workspace_(std::move(workspace)), in_(in), out_(out) {}

  /// Until the engine closes the stream; the exit status.
  int run() {
    while (true) {
      const auto frame = frames_.next();
      if (!frame) return fail(frame.error().text);
      if (!*frame) {
        if (!read_more()) return 0;
      } else if (const auto error = serve(**frame)) {
        return fail(*error);
      }
    }
  }

 private:
  bool read_more() {
    constexpr std::size_t kMost = 2 * wire::kFilePiece;
    while (true) {
      const ssize_t got = ::read(in_, frames_.room(kMost), kMost);
      if (got > 0) frames_.add(static_cast<std::size_t>(got));
      if (got > 0) return true;
      if (got == 0 || errno != EINTR) return false;
    }
  }

  int fail(const std::string& why) {
    log_line(why);
    send(wire::FileFrame::Kind::Failed, why);
    return 1;
  }
  void send(wire::FileFrame::Kind kind, std::string_view bytes) {
    std::string frame;
    wire::append_file_frame(frame, kind, bytes);
    // Where the engine is gone the next read says so.
    write_all(out_, frame);
  }
  void report(const wire::FilesReport& report) {
    send(wire::FileFrame::Kind::Report, report.SerializeAsString());
  }

  std::optional<std::string> serve(const wire::FileFrame& frame) {
    if (frame.kind == wire::FileFrame::Kind::Data) {
      write_on(frame.bytes);
      return std::nullopt;
    }
    wire::FilesOrder order;
    if (frame.kind != wire::FileFrame::Kind::Order ||
        !order.ParseFromArray(frame.bytes.data(), static_cast<int>(frame.bytes.size())))
      return "what the engine says is no order";
    if (order.has_receive()) {
      begin_file(order.receive());
      return std::nullopt;
    }
    if (order.has_give()) {
      give(order.give());
      return std::nullopt;
    }
    file_.reset();
    auto done = exchange_files(workspace_, order);
    if (!done) return done.error().text;
    if (!order.partial().empty()) tell_partial(order.partial(), *done->mutable_partial());
    report(*done);
    return std::nullopt;
  }

  Fd root() const { return Fd(::open(workspace_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

  void tell_partial(const std::string& mark, wire::FilesReport::Partial& partial) const {
    if (!wire::is_store_key(mark)) return;
    const Fd workspace = root();
    const auto opened = open_below(workspace.get(), wire::incoming_of_key(mark));
    const auto* file = std::get_if<RegularFile>(&opened);
    if (!file) return;
    partial.set_size(file->size());
    partial.set_hash(hash_of(file->fd.get(), file->size()));
  }

  void begin_file(const wire::FilesOrder::Receive& order) {
    file_.reset();
    const std::string place = wire::incoming_of_key(order.mark());
    what_ = "write " + shown(place);
    if (!wire::is_store_key(order.mark()))
      return stop({FileTrouble::Refused, "cannot " + what_ + ": it is no key of the store"});
    const Fd workspace = root();
    const Step step = last_step(place);
    const auto folder = enter_or_make(workspace.get(), step.folder);
    if (const auto* refusal = std::get_if<FileRefusal>(&folder)) return stop(*refusal);
    RegularFile file = open_regular(std::get<Fd>(folder).get(), step.name, O_RDWR | O_CREAT);
    if (!file) return stop(refused(what_, file.error));
    // One that was cut off may still read what had been sent to it; what two write may have holes.
    if (::flock(file.fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return stop({FileTrouble::Other, "cannot " + what_ + ": an earlier stream still writes it"});
    struct stat facts {};
    if (::fstat(file.fd.get(), &facts) != 0) return stop(refused(what_, errno));
    if (static_cast<std::uint64_t>(facts.st_size) < order.offset())
      return stop({FileTrouble::Other, "cannot " + what_ + ": less of it is there than before"});
    if (::ftruncate(file.fd.get(), static_cast<off_t>(order.offset())) != 0)
      return stop(refused(what_, errno));
    written_ = synced_ = order.offset();
    file_ = std::move(file.fd);
  }

  void write_on(std::string_view bytes) {
    while (file_ && !bytes.empty()) {
      const ssize_t count =
          ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(written_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return stop(refused(what_, errno));
      bytes.remove_prefix(static_cast<std::size_t>(count));
      written_ += static_cast<std::uint64_t>(count);
    }
    // Else the disk would be waited for at the end.
    if (file_ && written_ - synced_ >= kWrittenBehind) {
      ::sync_file_range(file_.get(), static_cast<off_t>(synced_),
                        static_cast<off_t>(written_ - synced_), SYNC_FILE_RANGE_WRITE);
      synced_ = written_;
    }
  }

  /// Said at once, so that the rest need not be sent.
  void stop(const FileRefusal& why) {
    const Fd workspace = root();
    wire::FilesReport report;
    answer(*report.mutable_moved(), with_room(why, written_, workspace.get()));
    this->report(report);
    file_.reset();
  }

  void give(const wire::FilesOrder::Give& order) {
    const std::string what = "cannot read " + shown(order.path());
    wire::FilesReport begun;
    const Fd workspace = root();
    const auto opened = open_below(workspace.get(), order.path());
    const auto* file = std::get_if<RegularFile>(&opened);
    if (!file) {
      answer(*begun.mutable_moved(), std::get<FileRefusal>(opened));
    } else if (!is_still(file->fd.get(), order.size(), order.modified_ns())) {
      answer(*begun.mutable_moved(),
             FileRefusal{FileTrouble::Other, what + ": it was changed before it was read"});
    } else {
      begun.mutable_partial()->set_hash(
          hash_of(file->fd.get(), std::min(order.offset(), order.size())));
    }
    report(begun);
    if (begun.moved().trouble() != 0) return;
    wire::FilesReport ended;
    if (const auto error = give_bytes(file->fd.get(), order))
      answer(*ended.mutable_moved(), refused("read " + shown(order.path()), error));
    else if (!is_still(file->fd.get(), order.size(), order.modified_ns()))
      answer(*ended.mutable_moved(),
             FileRefusal{FileTrouble::Other, what + ": it was changed while it was read"});
    report(ended);
  }

  /// errno, or 0; of a file that became shorter fewer.
  int give_bytes(int file, const wire::FilesOrder::Give& order) const {
    ::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    std::string frame;
    for (std::uint64_t at = order.offset(); at < order.size();) {
      frame.resize(wire::kFileFrameHead +
                   std::min<std::uint64_t>(wire::kFilePiece, order.size() - at));
      const ssize_t got = ::pread(file, frame.data() + wire::kFileFrameHead,
                                  frame.size() - wire::kFileFrameHead, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno;
      if (got == 0) return 0;
      frame.resize(wire::kFileFrameHead + static_cast<std::size_t>(got));
      wire::set_file_frame_head(frame, 0, wire::FileFrame::Kind::Data);
      if (const int error = write_all(out_, frame); error != 0) return error;
      at += static_cast<std::uint64_t>(got);
    }
    return 0;
  }

  std::string workspace_;
  int in_;
  int out_;
  wire::FileFrames frames_;
  // What is being received, where anything is.
  Fd file_;
  std::string what_;
  std::uint64_t written_{0};
  std::uint64_t synced_{0};
};

}  // namespace

int serve_files(const std::string& workspace, int in, int out) {
  set_log_name("hpcbatch-pilot files");
  return FileService(workspace, in, out).run();
}

}  // namespace hpcbatch::pilot
