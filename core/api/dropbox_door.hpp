// The way of drop boxes into the engine: their tasks are submitted like any client's, and their ends told back.
#pragma once

#include "api/api.hpp"
#include "documents/configuration.hpp"
#include "dropbox/dropbox.hpp"

#include "hpcbatch/result.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// Owns the drop boxes of one engine.  What is started while the engine runs is remembered in `home` and started again
/// with the next engine.
class DropboxDoors {
 public:
  /// `workspace` is a folder that all nodes see.
  DropboxDoors(Runtime& runtime, Api& api, ToolShelf& tools, std::string workspace, std::string home);
  DropboxDoors(const DropboxDoors&) = delete;
  DropboxDoors& operator=(const DropboxDoors&) = delete;
  ~DropboxDoors();

  Result<void> start(const DropboxSettings& settings);
  /// Watches it now and after every restart.
  Result<void> add(const DropboxSettings& settings);
  /// Those that earlier engines were told to watch.
  void start_remembered();
  std::vector<DropboxSettings> list() const;

 private:
  class Door;
  Runtime& runtime_;
  Api& api_;
  ToolShelf& tools_;
  std::string workspace_;
  std::string remembered_;
  std::vector<std::unique_ptr<Door>> doors_;
};

}  // namespace hpcbatch
