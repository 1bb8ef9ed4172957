// The files of a submission: as they are when it is handed in, which sites see them, and where
// output goes.
#pragma once

#include "api/read/read_request.hpp"
#include "engine/engine.hpp"
#include "links/recipe.hpp"
#include "model/ids.hpp"
#include "model/item.hpp"
#include "model/needs.hpp"
#include "model/site.hpp"
#include "tools/tool_registry.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

// Which sites see the files of a task, by their path_map, and to which these have to be staged in.

/// What of a recipe is each task's own, and the items as the store keeps them.
struct OwnItems {
  Filled filled;
  const std::vector<std::string>& stored;
};

std::vector<const Site*> sites_of(const Engine& engine);

/// Notes in `needs` the sites to which the recipe's files have to be staged in, and excludes those
/// that do not see all of the folders `shared` under the same names.  Throws BadRequest where none
/// is left for that.
void note_far_sites(const std::vector<const Site*>& sites, const wire::Start& start,
                    const OwnItems& items, const std::vector<std::string>& shared, Needs& needs);

// The files that a submission names, as they are when it is handed in.

struct NamedFiles {
  std::vector<std::string> inputs;        ///< must be there
  std::vector<std::string> destinations;  ///< must be files where they are there
};

struct SeenFiles {
  std::map<std::string, InputFile> files;
  std::string refusal;  ///< the first that is not as it must be
};

/// Those that can be looked at while their user waits.
NamedFiles named_now(const SubmitRequest& request);
/// Blocks.
SeenFiles look_at(const NamedFiles& named);

// Where a task's output goes, if not to the engine's logs.

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
