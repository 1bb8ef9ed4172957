// Which drop boxes are watched, and from now on.
#pragma once

#include "api/dropbox_ports.hpp"
#include "api/routes.hpp"
#include "documents/configuration.hpp"
#include "hpcbatch/result.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

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
