// Where a task's output goes, if not to the engine's logs.
#pragma once

#include "links/recipe.hpp"
#include "model/ids.hpp"
#include "model/item.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <optional>
#include <string>

namespace hpcbatch {

/// Absolute paths; empty: `log` has that stream; /dev/null: nobody has it.
struct OutputFiles {
  std::string out, err;
};

/// Of one task.
OutputFiles output_files(const wire::Start& start, Filled filled, TaskId task,
                         const std::optional<Item>& item);
/// Of one task of a recipe as the store keeps it.
OutputFiles output_files(const std::string& recipe, TaskId task, const std::optional<Item>& item);
/// Of all tasks of a submission: with the places that each fills in.
OutputFiles output_files(const wire::Start& start);

/// As `stdout` and `stderr`, where there are any.
void put(boost::json::object& object, const OutputFiles& files);
/// As sentences.
void add(boost::json::array& details, const OutputFiles& files);

}  // namespace hpcbatch
