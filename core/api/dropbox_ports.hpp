// The way of drop boxes into the engine: their tasks are submitted like any client's, and their
// ends told back.
#pragma once

#include "api/api.hpp"
#include "api/routes.hpp"
#include "documents/configuration.hpp"
#include "dropbox/dropbox.hpp"
#include "hpcbatch/result.hpp"
#include "loop/asio.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// One drop box as clients are told of it.
struct DropboxState {
  DropboxSettings settings;
  bool is_configured{false};  ///< by the configuration, not by a client
  std::string why_not;        ///< it cannot be watched just now
};

/// Owns the drop boxes of one engine, each of which is a process of its own: whatever a user's files
/// are, they are opened there, and who waits for them is nobody else.  What it is told while the engine runs is remembered in
/// `home` for the next engine. On the loop's thread.
class DropboxPorts {
 public:
  using Answer = std::function<void(Result<void>)>;

  /// `workspace` is a folder that all nodes see.
  DropboxPorts(Runtime& runtime, Api& api, ToolRegistry& tools, std::string workspace,
               const std::string& home);
  DropboxPorts(const DropboxPorts&) = delete;
  DropboxPorts& operator=(const DropboxPorts&) = delete;
  ~DropboxPorts();

  /// One of the configuration: it is not remembered, and only the configuration changes it.  One that
  /// cannot be watched just now is tried again once `start_remembered` was called.
  Result<void> start(const DropboxSettings& settings);
  /// Watches it now, with these settings instead of any others, and after every restart.
  void add(const DropboxSettings& settings, const Answer& answer);
  /// Its jobs go on; their results are written once the folder is watched again.
  void remove(const std::string& directory, const Answer& answer);
  /// Those that earlier engines were told to watch.  What cannot be watched is tried again and
  /// again.
  void start_remembered();
  std::vector<DropboxState> list() const;

 private:
  class Port;
  struct Box {
    DropboxSettings settings;
    bool is_configured{false};
    std::shared_ptr<Port> port;  ///< none: it cannot be watched just now
    std::string why_not;
    bool is_changing{false};
  };
  /// Its process is started, and `then` told when it watches or why it cannot.  `waits`: on this
  /// thread, but not for ever.
  void open(const std::string& directory, bool waits, const Answer& then);
  /// The processes of an engine before, which was killed.
  bool others_are_gone(std::chrono::seconds longest);
  /// Closes its port, then `then`; or refuses.
  void change(const std::string& directory, const Answer& refuse, std::function<void()> then);
  Result<void> remember() const;
  /// A file system that was not mounted yet is there before long.
  static constexpr std::chrono::seconds kTryEvery{10};
  void try_again_later(std::chrono::seconds after = kTryEvery);

  Runtime& runtime_;
  Api& api_;
  ToolRegistry& tools_;
  std::string workspace_;
  std::string remembered_;
  std::string lock_;  ///< shared by all processes of drop boxes
  bool others_are_gone_{false};
  std::map<std::string, Box> boxes_;  // by directory
  asio::steady_timer retry_;
};

// Which drop boxes are watched, and from now on.

class DropboxRoutes {
 public:
  explicit DropboxRoutes(DropboxPorts& ports) : ports_(ports) {}
  void add_to(Routes& routes);

 private:
  void list(const ReplyPtr& reply) const;
  void change(const HttpRequest& request, bool removes, const ReplyPtr& reply);

  DropboxPorts& ports_;
};

// The drop boxes that an engine was told to watch while it ran, kept in a file for the next one.

struct RememberedBoxes {
  std::vector<DropboxSettings> boxes;
  std::vector<std::string> warnings;  ///< what of the file could not be used
};

/// No boxes where there is no file.
RememberedBoxes read_remembered(const std::string& file);

/// On disk when it returns; the old file stays where it fails.
Result<void> write_remembered(const std::string& file, const std::vector<DropboxSettings>& boxes);

}  // namespace hpcbatch
