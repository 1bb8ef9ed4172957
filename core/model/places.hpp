// What stands for each task of an array in what all of them share: `{}`, `{index}`, `{id}`, and
// parts of an item that is a path.
#pragma once

#include "model/ids.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// Whether the item or a part of it is asked for: `{}`, `{.}` (without its ending), `{/}` (the name
/// without the folder), `{//}` (the folder), `{/.}` (the name without its ending).  As GNU parallel
/// has them.
bool has_item(std::string_view text);
/// Whether a path is absolute where every item is.
bool begins_with_item(std::string_view path);
/// Those replaced.
std::string with_item(std::string_view text, const std::string& item);
/// Also `{#}`, the index.
std::string with_item(std::string_view text, const std::string& item, std::uint32_t index);

/// Whether a path names another file for each task: by the item (or the index where there are no
/// items), `{index}` or `{#}`, or `{id}`.
bool has_place(std::string_view path);
/// Only an engine that has taken the task knows it.
bool has_id(std::string_view path);
/// All of them replaced; what an item has of them itself stays.
std::string with_places(std::string_view path, TaskId task, const std::optional<std::string>& item);

}  // namespace hpcbatch
