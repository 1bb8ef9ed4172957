#include "pilot/site/exchange.hpp"

#include "pilot/base/files.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/link/spool_carrier.hpp"
#include "pilot/site/file_store.hpp"
#include "posix/files.hpp"
#include "wire/relay.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace hpcbatch::pilot {

Result<std::string> read_all(int from) {
  std::string text;
  std::array<char, 65536> room;
  while (true) {
    const ssize_t got = ::read(from, room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{Error::Kind::Transient, std::strerror(errno)};
    if (got == 0) return text;
    text.append(room.data(), static_cast<std::size_t>(got));
  }
}

namespace {

// Files that are open at a time.
constexpr int kPutTogether = 64;

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
  if (!wire::is_plain_path(path))
    return refuse({FileTrouble::Refused, "cannot " + what + ": it is not below the workspace"});
  const Step step = last_step(path);
  const auto folder = enter(workspace, step.folder);
  if (const auto* refusal = std::get_if<FileRefusal>(&folder)) return refuse(*refusal);
  const RegularFile file = open_regular(std::get<Fd>(folder).get(), step.name);
  if (!file) return refuse(refused(what, file.error));
  const auto& [fd, facts, error] = file;
  const std::uint64_t size = file.size();
  took.set_size(size);
  took.set_mode(facts.st_mode & 0777);
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
    struct stat after {};
    if (done < size || ::fstat(fd.get(), &after) != 0 || after.st_size != facts.st_size ||
        after.st_mtim.tv_sec != facts.st_mtim.tv_sec ||
        after.st_mtim.tv_nsec != facts.st_mtim.tv_nsec)
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

int files_by_standard_streams(const std::string& workspace) {
  return answer_order<wire::FilesOrder>(
      "files", [&](const wire::FilesOrder& order) { return exchange_files(workspace, order); });
}

namespace {

/// A name that stays in the spool's folder.
bool is_connection(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) && !prefix.empty() && name.find('/') == std::string::npos &&
         std::count(name.begin(), name.end(), '.') == 2;
}

Result<std::vector<std::string>> connections_in(const std::string& spool,
                                                const std::string& prefix) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(spool.c_str()), ::closedir);
  // What cannot be seen is not gone.
  if (!directory)
    return Error{Error::Kind::Transient, "cannot open " + spool + ": " + std::strerror(errno)};
  while (const dirent* entry = ::readdir(directory.get())) {
    if (is_connection(entry->d_name, prefix)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Up to which of the order's pieces all are there, by connection.  Behind one that could not be
/// written none is.
std::map<std::string, std::uint64_t> put_pieces(const std::string& spool,
                                                const wire::SpoolOrder& order,
                                                wire::SpoolReport& report) {
  std::map<std::string, std::uint64_t> put;
  std::set<std::string> failed;
  for (const wire::SpoolPiece& piece : order.pieces()) {
    const std::string& name = piece.connection();
    if (!is_connection(name, order.prefix()) || failed.contains(name)) continue;
    const SpoolConnection connection(spool, name);
    const auto written = connection.down.put(piece.number(), piece.data());
    if (written) {
      put[name] = piece.number();
    } else {
      if (!connection.is_closed()) report.set_trouble(written.error().text);
      failed.insert(name);
    }
  }
  return put;
}

/// In turns, so that one that says much does not silence the others.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void take_along(const std::string& spool, const std::vector<std::string>& names,
                const std::map<std::string, std::uint64_t>& taken, std::uint64_t most_bytes,
                wire::SpoolReport& report) {
  std::map<std::string, std::vector<std::uint64_t>> left;
  for (const std::string& name : names) {
    const SpoolBox up = SpoolConnection(spool, name).up;
    const auto at = taken.find(name);
    for (const std::uint64_t number : up.numbers().value_or(std::vector<std::uint64_t>{})) {
      if (at != taken.end() && number <= at->second) {
        up.remove(number);
      } else {
        left[name].push_back(number);
      }
    }
  }
  std::uint64_t bytes = 0;
  std::set<std::string> stuck;
  for (std::size_t turn = 0; bytes < most_bytes; ++turn) {
    bool any = false;
    for (const auto& [name, numbers] : left) {
      if (turn >= numbers.size() || bytes >= most_bytes) continue;
      // What comes behind one that cannot be read yet is of no use.
      if (turn > 0 && numbers[turn] != numbers[turn - 1] + 1) continue;
      auto said =
          stuck.contains(name) ? std::nullopt : SpoolConnection(spool, name).up.take(numbers[turn]);
      if (!said) {
        stuck.insert(name);
        continue;
      }
      any = true;
      bytes += said->size();
      wire::SpoolPiece* piece = report.add_pieces();
      piece->set_connection(name);
      piece->set_number(numbers[turn]);
      piece->set_data(std::move(*said));
    }
    if (!any) return;
  }
}

}  // namespace

Result<wire::SpoolReport> exchange(const std::string& spool, const wire::SpoolOrder& order) {
  ::mkdir(spool.c_str(), 0700);
  wire::SpoolReport report;
  const auto put = put_pieces(spool, order, report);
  for (const std::string& name : order.closed()) {
    if (is_connection(name, order.prefix())) SpoolConnection(spool, name).close();
  }
  const auto names = connections_in(spool, order.prefix());
  if (!names) return names.error();
  std::vector<std::string> open;
  for (const std::string& name : *names) {
    const SpoolConnection connection(spool, name);
    if (connection.is_closed()) {
      if (connection.was_closed_long_ago()) connection.remove_all();
      continue;
    }
    open.push_back(name);
    wire::SpoolReport::Connection* shown = report.add_connections();
    shown->set_name(name);
    shown->set_waiting(connection.down.numbers().value_or(std::vector<std::uint64_t>{}).size());
    if (const auto at = put.find(name); at != put.end()) shown->set_put(at->second);
  }
  std::map<std::string, std::uint64_t> taken;
  for (const wire::SpoolPiece& piece : order.taken()) taken[piece.connection()] = piece.number();
  take_along(spool, open, taken, order.most_bytes(), report);
  return report;
}

int exchange_by_standard_streams(const std::string& workspace) {
  return answer_order<wire::SpoolOrder>("spool", [&](const wire::SpoolOrder& order) {
    return exchange(wire::spool_folder(workspace), order);
  });
}

}  // namespace hpcbatch::pilot
