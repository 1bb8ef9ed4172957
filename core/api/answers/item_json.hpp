// Bytes that JSON may not be able to carry: a task's item, what it printed.
#pragma once

#include "model/item.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace hpcbatch {

/// With padding (RFC 4648, 4).
std::string base64(std::string_view bytes);

/// `item`; where it is no UTF-8 also `item_base64`, so that two that look the same are told apart.
void put_item(boost::json::object& object, const Item& item);

/// The same with `columns`, and `columns_base64` of those that are no UTF-8.
void put_item_and_columns(boost::json::object& object, const Item& item);

}  // namespace hpcbatch
