// A history: what engine, pilots and outside observers saw happen, one record a line, for a checker
// that knows only what hpcbatch promises.  docs/formats.md lists the records.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::wire {

struct HistoryRecord {
  std::int64_t time_us{0};  ///< since 1970, by the clock of whoever recorded it
  std::string by;           ///< "engine/START", "pilot/NAME.RANK/INCARNATION", "outside"
  std::string what;         ///< such as "attempt-started"
  std::vector<std::pair<std::string, std::string>> facts;
};

/// With its line end.  Blanks, '%', '=' and what is not printable ASCII are written as %XX in
/// values.
std::string to_line(const HistoryRecord& record);

/// One recorder's file.  Each record is on its way to the file when `add` returns: it outlives
/// whoever is killed then.
class HistoryFile {
 public:
  /// `folder`/`name`.history, which is appended to.  What cannot be written is left out: a history
  /// is an aid of tests, and no reason to fail.
  HistoryFile(const std::string& folder, const std::string& name, std::string by);
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;
  ~HistoryFile();

  void add(std::string what, std::vector<std::pair<std::string, std::string>> facts) const;

 private:
  int file_;
  std::string by_;
};

}  // namespace hpcbatch::wire
