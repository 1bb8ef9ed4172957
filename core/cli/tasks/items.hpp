// Lists, tables and JSON lines -> the items of an array.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/process/process.hpp"
#include "model/index_set.hpp"
#include "model/item.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
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

// Of a list of items those that are still to be run.

/// Of each item of a submit's task what `same_item` says of it.
std::vector<std::string> items_to_compare(const boost::json::object& task);

/// The numbers, from 1, of those that are not done; an item that stands several times in the list
/// has to be done as often.
IndexSet left_items(const std::vector<std::string>& items,
                    std::unordered_map<std::string, std::size_t> times_done);

struct LeftOut {
  std::size_t out{0};   ///< are done
  std::size_t left{0};  ///< are to be run
  std::size_t all{0};
};
/// The task runs only those that are left, under their numbers in the whole list.
LeftOut leave_out_done(boost::json::object& task, const ManyOptions& many,
                       std::unordered_map<std::string, std::size_t> times_done);

/// On standard error; returns whether any is left.
bool tell_left(const LeftOut& items, const std::string& submissions);

// The fields of a JSON object as its author wrote them.

/// Names and values: texts without their quotation marks, `null` as an empty text, numbers and all
/// else letter by letter.  Nothing where the line is no JSON object.
std::optional<std::vector<std::pair<std::string, std::string>>> json_fields(std::string_view line);

/// The line with the numbers of those fields that are texts by their name in quotation marks, so
/// that they stay the letters of the author: `{"items": [0.10], "cpus": 2}` has "0.10" and 2.
std::string with_numbers_as_texts(std::string_view line,
                                  const std::function<bool(std::string_view name)>& is_text);

}  // namespace hpcbatch
