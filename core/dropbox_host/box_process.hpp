// The process of one drop box as the engine sees it: started, spoken with, and collected when it has
// ended.
#pragma once

#include "documents/struct_json.hpp"
#include "dropbox/dropbox.hpp"
#include "hpcbatch/result.hpp"
#include "loop/asio.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace hpcbatch {

// What an engine and the process of one of its drop boxes say to each other: lines of JSON over a pair
// of sockets, each an object with one key.
//
//   engine   open: settings        first, and once
//            end: how a task ended
//            close                 finish what is at work, and end
//   process  opened | refused: why
//            submit: a task | cancel: its key | warn: a line for the engine's log
//
// The process ends at once where its engine is gone.  All of it is found again by the next one on the
// same folder, which submits the same keys again.

/// With its line end.  Texts are bytes.
std::string message(std::string_view key, boost::json::value value);
/// The one key and what it holds.  These throw std::exception for what no process of ours says.
boost::json::key_value_pair read_message(std::string_view line);

template <>
inline constexpr auto kFields<ToolCall> = fields("tool", &ToolCall::tool, "parameters",
                                                 &ToolCall::parameters, "inputs", &ToolCall::inputs,
                                                 "outputs", &ToolCall::outputs);
/// Without what is a function or has to do with tests.
template <>
inline constexpr auto kFields<DropboxOptions> = fields(
    "directory", &DropboxOptions::directory, "workspace", &DropboxOptions::workspace, "allow",
    &DropboxOptions::allow, "templates", &DropboxOptions::templates, "variables",
    &DropboxOptions::variables, "trust_group", &DropboxOptions::trust_group, "most_active_of_one",
    &DropboxOptions::most_active_of_one, "input_limit", &DropboxOptions::input_limit);
template <>
inline constexpr auto kFields<DropboxTask> = fields("key", &DropboxTask::key, "client",
                                                    &DropboxTask::client, "name",
                                                    &DropboxTask::name, "directory",
                                                    &DropboxTask::directory, "work",
                                                    &DropboxTask::work, "output_directory",
                                                    &DropboxTask::output_directory);
template <>
inline constexpr auto kFields<DropboxTaskEnd::Output> =
    fields("file", &DropboxTaskEnd::Output::file, "optional", &DropboxTaskEnd::Output::optional);
template <>
inline constexpr auto kFields<DropboxTaskEnd> = fields(
    "key", &DropboxTaskEnd::key, "failure", &DropboxTaskEnd::failure, "exit_code",
    &DropboxTaskEnd::exit_code, "message", &DropboxTaskEnd::message, "stdout",
    &DropboxTaskEnd::standard_output, "stderr", &DropboxTaskEnd::standard_error, "start",
    &DropboxTaskEnd::start, "end", &DropboxTaskEnd::end, "outputs", &DropboxTaskEnd::outputs);

/// On the loop's thread.
class BoxProcess : public std::enable_shared_from_this<BoxProcess> {
 public:
  struct Events {
    std::function<void(DropboxTask)> submit;
    std::function<void(const std::string& key)> cancel;
    std::function<void(const std::string& text)> warn;
    /// It has ended, and nothing of it is left; the last event.
    std::function<void()> ended;
  };

  explicit BoxProcess(asio::io_context& loop) : socket_(loop), end_(loop), patience_(loop) {}
  BoxProcess(const BoxProcess&) = delete;
  BoxProcess& operator=(const BoxProcess&) = delete;
  ~BoxProcess() { leave(); }

  /// `lock`: a file that it shares a lock of while it lives.
  Result<void> start(const DropboxOptions& options, const std::string& lock);
  /// Waits on this thread until it watches the folder, or says why it cannot.
  Result<void> wait(std::chrono::milliseconds longest);
  /// `opened` is called once, where that was not waited for.
  void listen(Events events, std::function<void(const Result<void>&)> opened = {});

  void tell(const DropboxTaskEnd& end);
  /// It ends when what it has in hand is done.
  void close();
  /// It is killed, and no event comes any more.
  void leave();

 private:
  void send(std::string line);
  void write_next();
  void read_next();
  void heard(const std::string& line);
  /// It says no more.
  void lost();
  void collect();
  void look_again();
  void ended();

  asio::local::stream_protocol::socket socket_;
  asio::posix::stream_descriptor end_;  ///< readable once it has ended
  asio::steady_timer patience_;
  pid_t process_{0};
  Events events_;
  std::function<void(const Result<void>&)> opened_;
  std::string text_;
  std::deque<std::string> lines_;  ///< to be written, the first one just now
};

}  // namespace hpcbatch
