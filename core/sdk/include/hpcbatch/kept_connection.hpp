// What a transport may be able to do besides: end a connection that outlasts it.
#pragma once

#include "hpcbatch/command_line.hpp"

namespace hpcbatch {

/// A class that is a `Transport` may be this too, where its calls share a connection that other
/// transports, and engines that come later, use as well; the engine finds out with a dynamic_cast.
/// Not part of `Transport`, so that plugins that know nothing of it stay as they are.
class ConnectionKeeper {
 public:
  ConnectionKeeper() = default;
  ConnectionKeeper(const ConnectionKeeper&) = delete;
  ConnectionKeeper& operator=(const ConnectionKeeper&) = delete;
  virtual ~ConnectionKeeper() = default;

  /// Ends it, unless a person has opened it.  Blocks until then or until the deadline; in turn with
  /// the transport's other calls.
  virtual void end_connection(Deadline deadline) = 0;
};

}  // namespace hpcbatch
