// Tools whose plugins run in a process of their own: one that crashes, hangs or takes all memory ends
// that process, and whoever asked hears it in one sentence.
#pragma once

#include "posix/files.hpp"
#include "tool_host/messages.hpp"
#include "tools/tool_registry.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hpcbatch::tool_host {

/// A file as it was: one that was installed anew has another.
struct FileStamp {
  std::string path;
  std::uint64_t device{0}, inode{0};
  std::int64_t changed_ns{0}, size{0};
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// The process, which is started when it is first needed, and again after its end, or when a
/// plugin that it has loaded, or its own program, is another file by now.  Callable from several
/// threads, one after another; each call blocks until its answer or `longest`.
class HostProcess {
 public:
  struct Options {
    std::string program;                      ///< `hpcbatch-tool-host`
    std::string plugin_path;                  ///< as HPCBATCH_PLUGIN_PATH has it
    std::chrono::milliseconds longest{5000};  ///< for one question
  };
  explicit HostProcess(Options options) : options_(std::move(options)) {}
  ~HostProcess() { end(std::chrono::milliseconds{0}); }
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  /// Throws std::runtime_error with one sentence where the plugin refuses, or does not answer.
  Answer ask(const Question& question);

 private:
  void start();
  bool has_ended() const;
  FileStamp plugin_now(const std::string& plugin) const;
  Answer answer_to(const Question& question, std::chrono::milliseconds longest);
  /// How it ended by itself, in words; it is killed where it still runs after that time.
  std::string end(std::chrono::milliseconds patience);

  Options options_;
  std::mutex mutex_;
  pid_t child_{0};
  Fd socket_;
  FileStamp program_;
  std::map<std::string, FileStamp> opened_;  ///< plugins that this process has loaded
};

/// A tool of such a process; without facts where its plugin tells none.
class ApartTool final : public BlockingTool, public InputFacts {
 public:
  ApartTool(std::shared_ptr<HostProcess> host, std::string plugin, std::string text)
      : host_(std::move(host)), plugin_(std::move(plugin)), text_(std::move(text)) {}
  ToolDescription describe() const override;
  void validate(const ToolRequest& request) const override;
  ToolTask render(const ToolRequest& request) const override;
  std::vector<FactDescription> facts() const override;
  std::map<std::string, double> facts_of(const InputFile& file) const override;

 private:
  template <class Wanted>
  Wanted ask(Question::What what, const ToolRequest& request, const InputFile& file = {}) const;

  std::shared_ptr<HostProcess> host_;
  std::string plugin_, text_;
};

}  // namespace hpcbatch::tool_host
