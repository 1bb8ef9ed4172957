// HTTP/1.1 on the engine's Unix socket, for this user alone.
#pragma once

#include "hpcbatch/result.hpp"
#include "posix/files.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace hpcbatch {

// The file by which clients find a server: made, and found to be removed or replaced.  All here blocks
// on file systems; any thread.

/// A Unix socket's file, as it was made.
struct SocketFile {
  std::string path;
  dev_t device{0};
  ino_t inode{0};
};

/// False once somebody has removed or replaced the file: nobody new comes in.
bool is_in_place(const SocketFile& file);

struct ListeningSocket {
  Fd descriptor;
  SocketFile file;
};

/// `path` may be longer than a socket address holds.  The socket has mode 0600; one that is there is
/// replaced.
Result<ListeningSocket> listen_at(const std::string& path);
/// The same; Rejected where another process listens there.
Result<ListeningSocket> listen_again_at(const std::string& path);

/// A request as the routes see it.
struct HttpRequest {
  std::string method;
  std::vector<std::string> path;             ///< parts between slashes, decoded
  std::map<std::string, std::string> query;  ///< decoded
  std::string body;
};

/// How one request is answered: once by `answer` or `text`, or by `line` any number of times and then
/// `finish`.  Calls after the client has gone do nothing.  Kept alive by whoever will answer.
class HttpReply {
 public:
  HttpReply() = default;
  HttpReply(const HttpReply&) = delete;
  HttpReply& operator=(const HttpReply&) = delete;
  virtual ~HttpReply() = default;

  virtual void answer(int status, const boost::json::value& body) = 0;
  /// With status 200, a text of that media type.
  virtual void text(std::string_view type, const std::string& body) = 0;
  /// One object of an answer that is a line each (application/x-ndjson, chunked).
  virtual void line(const boost::json::value& object) = 0;
  virtual void finish() = 0;
  /// Bytes handed over and not yet taken by the client.
  virtual std::size_t unsent() const = 0;
  /// Once little is left unsent; at once where that is so.
  virtual void when_sent(std::function<void()> then) = 0;
  /// Called when the client hangs up before it has its answer; the last one given counts.
  virtual void on_gone(std::function<void()> then) = 0;

  void error(int status, const std::string& text);
};

/// It may keep of the request what it likes: a body may be large.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

/// Serves until destroyed.  Other users are hung up on before they are read.  A client that goes is
/// noticed at once, whatever it waits for.
class HttpServer {
 public:
  /// Where more clients come than `most_clients`, the one that has had nothing to say for longest
  /// is hung up on; where all wait for an answer, the new one is told so (503).
  HttpServer(boost::asio::io_context& loop, HttpHandler handler,
             std::size_t most_clients = SIZE_MAX);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  /// At what `listen_at` makes there.
  Result<void> listen(const std::string& path);
  /// In place of where it has listened, if it has; clients that are connected stay.
  void listen(ListeningSocket socket);
  /// Where it listens.
  const SocketFile& file() const;
  std::size_t clients() const;
  /// From now on, who gets no answer is hung up on, as by an engine that has gone: he asks the next
  /// one.
  void end();
  struct State;

 private:
  std::shared_ptr<State> state_;  // its connections may outlive the server by a moment
};

}  // namespace hpcbatch
