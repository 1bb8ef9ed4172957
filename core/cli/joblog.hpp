// A file with a line for each task that has ended, as GNU parallel's --joblog.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

namespace hpcbatch {

/// `task`: as the engine shows it, ended.  Without a newline; times in seconds, of a task that
/// never ran 0, and its exit code is -1.
std::string joblog_line(std::uint64_t number, const boost::json::object& task);

class Joblog {
 public:
  /// Begins a new file, or goes on with one.  Throws CommandError.
  Joblog(const std::string& file, bool goes_on);
  ~Joblog();
  Joblog(const Joblog&) = delete;
  Joblog& operator=(const Joblog&) = delete;

  /// Each line is there as soon as this returns.
  void add(std::uint64_t number, const boost::json::object& task);

 private:
  void write(const std::string& text);

  std::string file_;
  int descriptor_;
};

}  // namespace hpcbatch
