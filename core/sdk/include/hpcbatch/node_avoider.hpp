// What a scheduler plugin may add to its interface: how an allocation is kept from nodes on which
// tasks fail.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch {

/// A class that is a `Scheduler` may be this too; the engine finds out with a dynamic_cast.  Not
/// part of `Scheduler`, so that plugins that know nothing of it stay as they are.  The same
/// promises: no I/O, no clock, callable from any thread.
class NodeAvoider {
 public:
  NodeAvoider() = default;
  NodeAvoider(const NodeAvoider&) = delete;
  NodeAvoider& operator=(const NodeAvoider&) = delete;
  virtual ~NodeAvoider() = default;

  /// Options for `AllocationRequest::options` by which none of these nodes is used.  Names are as
  /// pilots read them on their nodes; what cannot be a node's name there is left out.
  virtual std::vector<std::string> options_without(const std::vector<std::string>& nodes) const = 0;
};

}  // namespace hpcbatch
