// What each pane lists: how the engine is asked for it, its columns, which rows and in which order.  Pure.
#pragma once

#include "cli/show/listings.hpp"
#include "cli/show/values.hpp"
#include "cli/top/state.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace hpcbatch::top {

/// As many rows as the engine is asked for at once.
inline constexpr std::size_t kRowsAPage = 100;

const char* name_of(Pane pane);
/// A page of it, as filter and `within` have it.
std::string target_of(Pane pane, const ListView& list);
/// Takes the rows out of the answer, and where the next page begins.
void take_rows(Pane pane, ListView& list, const boost::json::object& answer);
/// By which one row is known.
std::string id_of(Pane pane, const boost::json::object& row);
/// Sorted, and only those that the filter admits.
Objects rows_of(Pane pane, const ListView& list);
std::vector<ListColumn> columns_of(Pane pane, const Objects& rows, double now);
/// A line of titles and a line for each row; columns for which there is no room are left out.
std::vector<std::string> lines_of(const std::vector<ListColumn>& columns, Pane pane,
                                  const Objects& rows, std::size_t room);
/// The ids that a row stands for, as a change takes them.
boost::json::array ids_of(const std::string& id);
/// `12.3-9`, `12-14`: more than one.
bool is_range(const std::string& id);

}  // namespace hpcbatch::top
