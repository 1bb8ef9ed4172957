// Asks the engine once for all pages that are open.
#pragma once

#include "cli/client/http_client.hpp"
#include "web/picture.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hpcbatch::web {

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

  HttpClient engine_;
  int interrupt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Picture picture_;
  int pages_{0};
  bool is_ending_{false};
  double runs_known_until_;
  bool was_seen_{false};
  std::thread thread_;
};

}  // namespace hpcbatch::web
