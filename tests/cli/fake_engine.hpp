// An engine's socket without an engine: a test says what it answers, and sees what was asked.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hpcbatch::test {

struct FakeRequest {
  std::string method;
  std::string target;
  std::string body;
};

/// The connection on which a request came, for its answer.
class FakeConnection {
 public:
  explicit FakeConnection(int socket) : socket_(socket) {}
  void answer(int status, std::string_view body);
  /// A chunked answer: each text is a chunk as it is.
  void begin_chunks();
  void chunk(std::string_view text);
  void end_chunks();
  /// Closes without another word.
  void hang_up();
  bool is_hung_up() const { return is_hung_up_; }

 private:
  void send(std::string_view text);

  int socket_;
  bool is_hung_up_{false};
};

/// Serves each connection in a thread of its own until it is destroyed.
class FakeEngine {
 public:
  /// Called in the connection's thread; must answer or hang up.
  using Handler = std::function<void(const FakeRequest&, FakeConnection&)>;

  FakeEngine(const std::string& socket_path, Handler handler);
  ~FakeEngine();
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  std::vector<FakeRequest> requests() const;
  /// Blocks until that was asked for; the test's own time limit is the only one.
  FakeRequest wait_for(const std::string& method, const std::string& target_prefix) const;
  std::size_t connections() const;

 private:
  void accept_all();
  void serve(int socket);

  Handler handler_;
  int listener_{-1};
  mutable std::mutex mutex_;
  mutable std::condition_variable asked_;
  std::vector<FakeRequest> requests_;
  std::vector<int> sockets_;
  std::list<std::thread> threads_;
  bool is_ending_{false};
  std::thread acceptor_;
};

}  // namespace hpcbatch::test
