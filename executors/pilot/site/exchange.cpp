#include "pilot/site/file_service.hpp"

#include "pilot/base/log_line.hpp"
#include "pilot/link/spool_carrier.hpp"
#include "posix/files.hpp"
#include "wire/relay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {

namespace {

Result<std::string> read_all(int from) {
  std::string text;
  if (const int error = hpcbatch::read_all(from, text))
    return Error{Error::Kind::Transient, std::strerror(error)};
  return text;
}

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
  set_log_name("hpcbatch-pilot spool");
  const auto input = read_all(STDIN_FILENO);
  const auto text = input ? wire::opened_exchange(*input) : input;
  wire::SpoolOrder order;
  if (!text || !order.ParseFromString(*text)) {
    log_line("cannot read what the engine orders: " +
             (text ? "it is no order" : text.error().text));
    return 2;
  }
  const auto report = exchange(wire::spool_folder(workspace), order);
  if (!report) {
    log_line(report.error().text);
    return 1;
  }
  return write_all(STDOUT_FILENO, wire::sealed_exchange(report->SerializeAsString())) == 0 ? 0 : 1;
}

}  // namespace hpcbatch::pilot
