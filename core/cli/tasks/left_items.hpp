// Of a list of items those that are still to be run.
#pragma once

#include "cli/parse/command.hpp"
#include "model/index_set.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch
