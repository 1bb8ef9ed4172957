// The interface of a tool plugin: turns one request of a user into the command that a task runs.
#pragma once

#include "hpcbatch/plugin.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// One input file as it was when the request was made; a plugin opens no file itself.
struct InputFile {
  std::string path;
  std::uint64_t size{0};  ///< bytes
  std::chrono::system_clock::time_point modified{};
};

/// What the core has read of the tool's file and of the user's request, already checked against the
/// declarations.
struct ToolRequest {
  std::string tool;
  std::map<std::string, std::string> parameters;  ///< with the defaults filled in
  std::map<std::string, std::vector<InputFile>>
      inputs;  ///< one file each unless declared as a list
  std::map<std::string, std::string>
      outputs;  ///< where the task is to write; moved when it succeeded
};

/// What one task of the tool needs; an absent field leaves what the tool's file or the user says.
struct ToolNeeds {
  std::optional<double> cpus;
  std::optional<std::uint64_t> memory;  ///< bytes
  std::optional<std::uint64_t> disk;    ///< bytes
  std::map<std::string, double> gpus;   ///< by kind; kind "" is any
  std::optional<std::chrono::seconds> time;
};

/// The task that a request became.
struct ToolTask {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::string container;  ///< image to run it in; empty: none
  ToolNeeds needs;
};

/// What a plugin says of itself, for `tools show`.
struct ToolDescription {
  std::string summary;
};

/// The recipe of one tool, made from that tool's YAML file (the whole text is the plugin's
/// configuration).  Pure: no I/O, callable from any thread.  A request that cannot be served throws
/// std::exception with one sentence.
class Tool {
 public:
  static constexpr hpcbatch_plugin_kind kKind = HPCBATCH_KIND_TOOL;
  Tool() = default;
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;
  virtual ~Tool() = default;

  virtual ToolDescription describe() const = 0;
  /// Throws where the request is wrong; what is fine here must not be refused by `render`.
  virtual void validate(const ToolRequest& request) const = 0;
  virtual ToolTask render(const ToolRequest& request) const = 0;
};

}  // namespace hpcbatch

#define HPCBATCH_TOOL(Concrete, name, version) \
  HPCBATCH_PLUGIN_(hpcbatch::Tool, Concrete, HPCBATCH_KIND_TOOL, name, version)
