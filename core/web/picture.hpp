// What a page shows, kept so that each page gets what has changed since it last heard.  Pure.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace hpcbatch::web {

/// One thread at a time.  Times are seconds since 1970.
class Picture {
 public:
  /// What `section` consists of now, by the key `name_of` of each; what is not in it is gone.
  void put(const std::string& section, const boost::json::array& entries, std::string_view name_of);
  /// A section that is one object.
  void put(const std::string& section, boost::json::object object);
  /// How many tasks there were in each state at `time`; kept by the second for an hour, by the minute
  /// for a day.
  void add_counts(double time, const boost::json::object& tasks);
  /// Tasks that have ended, or run: the newest 20,000 are kept, each once.
  void add_runs(const boost::json::array& tasks);

  std::uint64_t version() const { return version_; }
  /// What has changed since that version; of 0 all.
  boost::json::object since(std::uint64_t version) const;

 private:
  struct Entry {
    std::string text;
    boost::json::object value;
    std::uint64_t version{0};
    bool gone{false};
  };
  using Section = std::map<std::string, Entry, std::less<>>;
  struct Point {
    boost::json::array values;
    std::uint64_t version;
  };

  std::uint64_t version_{0};
  std::map<std::string, Section, std::less<>> sections_;
  std::map<std::string, Entry, std::less<>> objects_;
  std::deque<Point> seconds_;
  std::deque<Point> minutes_;
  std::deque<Point> runs_;
  std::set<std::string, std::less<>> known_runs_;  ///< ids with attempts, of `runs_`
};

}  // namespace hpcbatch::web
