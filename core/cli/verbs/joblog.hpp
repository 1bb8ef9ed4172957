// A file with a line for each task that has ended, as GNU parallel's --joblog.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <set>
#include <string>

namespace hpcbatch {

/// `task`: as the engine shows it, ended.  Without a newline; times in seconds, of a task that
/// never ran 0, and its exit code is -1.
std::string joblog_line(std::uint64_t number, const boost::json::object& task);

class Joblog {
 public:
  /// Opens it and changes nothing yet.  Throws CommandError.
  explicit Joblog(const std::string& file);
  ~Joblog();
  Joblog(const Joblog&) = delete;
  Joblog& operator=(const Joblog&) = delete;

  /// A new one, in place of what was there.
  void begin();
  /// Goes on with what is there; returns the numbers that it has.
  std::set<std::uint64_t> resume();
  /// Each line is there as soon as this returns.  Throws OutputClosed.
  void add(std::uint64_t number, const boost::json::object& task);

 private:
  void write(const std::string& text);

  std::string file_;
  int descriptor_;
};

}  // namespace hpcbatch
