// Which drop boxes are watched, and from now on.
#pragma once

#include "api/dropbox_ports.hpp"
#include "api/routes.hpp"

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

}  // namespace hpcbatch
