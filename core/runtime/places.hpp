// What stands for each task of an array in what all of them share: `{}`, `{index}` and `{id}`.
#pragma once

#include "model/ids.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// Whether `{}` is in it, which in a command stands for the item.
bool has_item(std::string_view text);
/// `{}` replaced by the item.
std::string with_item(std::string text, const std::string& item);

/// Whether a path names another file for each task: by `{}` (the item, or the index where there are
/// no items), `{index}` or `{id}`.
bool has_place(std::string_view path);
/// Only an engine that has taken the task knows it.
bool has_id(std::string_view path);
/// All of them replaced; what an item has of them itself stays.
std::string with_places(std::string_view path, TaskId task, const std::optional<std::string>& item);

}  // namespace hpcbatch
