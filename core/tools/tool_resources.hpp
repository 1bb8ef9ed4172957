// The `resources:` of a tool's file: amounts, each a constant or an expression of the request.
#pragma once

#include "documents/view.hpp"
#include "hpcbatch/result.hpp"
#include "model/needs.hpp"
#include "tools/expression.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// One amount with the place that says it, for messages.
struct ToolAmount {
  Expression expression;
  std::string place;  ///< `FILE:LINE: 'memory'`
};

struct ToolResources {
  std::optional<ToolAmount> cpus;
  std::optional<ToolAmount> memory;  ///< bytes
  std::optional<ToolAmount> disk;    ///< bytes
  std::uint64_t output_limit{0};     ///< bytes of each stream that are kept; 0: as the site says
  std::optional<ToolAmount> time;    ///< seconds
  std::map<std::string, ToolAmount> gpus;  ///< by kind; kind "" is any
  std::vector<std::string> tags;           ///< sorted
};

/// What an expression may use.
struct ToolNames {
  std::vector<std::string> known;
  std::vector<std::string> open;  ///< of these, also any `NAME.WORD`
};

/// Throws DocumentError.
ToolResources parse_resources(const View& view, const ToolNames& names);

std::vector<const ToolAmount*> amounts(const ToolResources& resources);

/// The needs of one request; without cpus it is one.  Refused where an amount comes out negative,
/// not a number, or beyond what any machine has.
Result<Needs> evaluate(const ToolResources& resources, const std::map<std::string, double>& values);

}  // namespace hpcbatch
