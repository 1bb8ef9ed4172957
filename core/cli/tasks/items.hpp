// Lists, tables and JSON lines -> the items of an array.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/process/interrupt.hpp"
#include "model/item.hpp"

#include <boost/json/array.hpp>

#include <string>
#include <vector>

namespace hpcbatch {

/// One source as it was read.
struct SourceText {
  std::string name;  ///< for messages
  std::vector<std::string> lines;
  bool is_file{true};  ///< else words of the command line
};

struct Items {
  boost::json::array items;          ///< texts, rows (lists of texts) or objects, all of one kind
  std::vector<std::string> columns;  ///< names for those of the rows; empty: they have numbers
  std::vector<std::string> texts;    ///< what stands for an object as a whole
};

/// Of several sources all combinations, the last one varying fastest, or, linked, the first of
/// each, the second of each and so on.  Empty lines are left out.  Throws CommandError.
Items items_of(const std::vector<SourceText>& sources, const ItemOptions& options);
/// The same of what the options name.
Items read_items(const ItemOptions& options, const Interrupt& interrupt);

/// One of the items, as placeholders see it.
Item item_of(const boost::json::value& item, const std::vector<std::string>& columns);

}  // namespace hpcbatch
