// One node of one site, by the name that its pilots give.
#pragma once

#include <compare>
#include <string>

namespace hpcbatch {

struct NodeName {
  std::string site;
  std::string node;
  bool empty() const { return node.empty(); }
  friend auto operator<=>(const NodeName&, const NodeName&) = default;
};

}  // namespace hpcbatch
