// Asks the engine once for all pages that are open.
#pragma once

#include "cli/client/http_client.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hpcbatch::web {

// What a page shows, kept so that each page gets what has changed since it last heard.  Pure.

/// One thread at a time.  Times are seconds since 1970.
class Picture {
 public:
  /// What `section` consists of now, by the key `name_of` of each; what is not in it is gone.
  void put(const std::string& section, const boost::json::array& entries, std::string_view name_of);
  /// What of a section has changed, and names of what has gone from it.
  void change(const std::string& section, const boost::json::array& entries,
              std::string_view name_of, const boost::json::array& gone);
  /// A section that is one object.
  void put(const std::string& section, boost::json::object object);
  /// How many tasks there were in each state at `time`; kept by the second for an hour, by the minute
  /// for a day.
  void add_counts(double time, const boost::json::object& tasks);
  /// Tasks that have ended: the newest 20,000 are kept, each once.
  void add_runs(const boost::json::array& tasks);

  std::uint64_t version() const { return version_; }
  /// What has changed since that version; of 0, and of one that is long past, all.
  boost::json::object since(std::uint64_t version) const;

 private:
  struct Entry {
    std::string text;
    boost::json::object value;
    std::uint64_t version{0};
    bool gone{false};
  };
  /// Whether that is new.
  static bool set(Entry& entry, const boost::json::object& object, std::uint64_t version);
  using Section = std::map<std::string, Entry, std::less<>>;
  void forget_gone(Section& section);
  struct Point {
    boost::json::array values;
    std::uint64_t version;
  };

  std::uint64_t version_{0};
  std::uint64_t forgotten_{0};  ///< what went in a version up to here may not be known any more
  std::map<std::string, Section, std::less<>> sections_;
  std::map<std::string, Entry, std::less<>> objects_;
  std::deque<Point> seconds_;
  std::deque<Point> minutes_;
  std::deque<Point> runs_;
  std::set<std::string, std::less<>> known_runs_;  ///< ids with attempts, of `runs_`
};

/// One thread of its own asks; any thread may ask it.
class Watcher {
 public:
  /// Pages are told whether they may change anything.  `interrupt` becomes readable when it is to end.
  Watcher(std::vector<std::string> sockets, bool may_change, int interrupt);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// While one lives the engine is asked all; else only how many tasks there are, and what ran.
  class Page {
   public:
    explicit Page(Watcher& watcher);
    ~Page();
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;

   private:
    Watcher& watcher_;
  };

  /// What has changed since `version`, as JSON; waits for a change, `time` at most: then empty.
  struct Change {
    std::uint64_t version{0};
    std::string text;
  };
  std::optional<Change> change_since(std::uint64_t version, std::chrono::milliseconds time);

 private:
  void run();
  void look(std::uint64_t round);
  /// Nothing where the engine does not answer; what it says is then told to the pages.
  std::optional<boost::json::object> ask(const std::string& target);
  void tell_engine(boost::json::object engine);
  void look_at_runs(std::uint32_t most);

  HttpClient engine_;
  int interrupt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Picture picture_;
  int pages_{0};
  bool is_ending_{false};
  std::string runs_cursor_;
  bool was_seen_{false};
  std::thread thread_;
};

}  // namespace hpcbatch::web
