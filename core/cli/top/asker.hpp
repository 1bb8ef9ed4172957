// Asks the engine in a thread of its own, so that an engine that is slow or gone keeps no key from being obeyed.
#pragma once

#include "cli/client/http_client.hpp"
#include "cli/top/state.hpp"
#include "posix/files.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace hpcbatch::top {

/// What the engine said to an order.
struct Done {
  Order order;
  std::optional<boost::json::object> answer{};
  std::string trouble{};
};
using Heard = std::variant<Reply, Done>;

/// One thread besides its own.
class Asker {
 public:
  explicit Asker(std::vector<std::string> sockets);
  /// Gives up what it waits for.
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  /// Both are left out while it is at work; `is_busy` says so.
  void ask(std::vector<Question> questions, std::optional<Order> order);
  bool is_busy() const;
  /// Readable when there is something to take.
  int descriptor() const { return heard_event_.get(); }
  std::vector<Heard> take();

 private:
  void run();
  Reply asked(const Question& question);
  Done done(Order order);
  void put(Heard heard);

  Fd end_, heard_event_;
  HttpClient engine_;
  mutable std::mutex mutex_;
  std::condition_variable wanted_;
  std::vector<Question> questions_;
  std::optional<Order> order_;
  std::vector<Heard> heard_;
  bool is_busy_{false}, is_ending_{false};
  std::thread thread_;
};

}  // namespace hpcbatch::top
