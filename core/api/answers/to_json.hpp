// Values of the model in the words of docs/api.md.
#pragma once

#include "engine/engine.hpp"
#include "model/item.hpp"
#include "model/task.hpp"
#include "records/advice.hpp"
#include "store/store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace hpcbatch {

/// Seconds since 1970.
double seconds(Time time);
double seconds(Duration duration);
boost::json::object to_json(const Needs& needs);
boost::json::object gpus_json(const Resources& resources);
/// `12` for a task or all of an array, `12.1-99` for a range.
std::string id_of(ArrayId array, IndexRange range);

/// The ids of what is waited for.
boost::json::array to_json(const std::vector<Dependency>& after);
/// What a task waits for, how where that is not success alone, and the rest of its course.
void put_course(boost::json::object& object, const std::vector<Dependency>& after,
                const Course& course);

// Bytes that JSON may not be able to carry: a task's item, what it printed.

/// With padding (RFC 4648, 4).
std::string base64(std::string_view bytes);

/// `item`; where it is no UTF-8 also `item_base64`, so that two that look the same are told apart.
void put_item(boost::json::object& object, const Item& item);

/// The same with `columns`, and `columns_base64` of those that are no UTF-8.
void put_item_and_columns(boost::json::object& object, const Item& item);

// What tasks say of themselves, as JSON.

/// `metrics`, or `metrics_error` where the text is no JSON object; nothing of an empty text.
void put_metrics(boost::json::object& object, const std::string& text);

// What runs used, in the words of docs/api.md.

/// Hours, and GB-hours of memory (GB is 2^30 bytes).
boost::json::object to_json(const records::Usage& usage);
/// What 50 and 95 of 100 runs took; empty where none was seen.
boost::json::object to_json(const records::Profile& profile);
/// With a sentence; `days`: that the usage is of.
boost::json::object to_json(const records::Advice& advice, double days);

}  // namespace hpcbatch
