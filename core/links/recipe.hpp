// What a task runs, as the store keeps it and a pilot gets it.
#pragma once

#include "hardware/cpu_binding.hpp"
#include "model/container.hpp"
#include "model/ids.hpp"
#include "model/item.hpp"
#include "model/task_service.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

namespace wire {
class Start;
}
namespace store {
struct Recipe;
}

/// What a pilot is sent of one thing at most: a task, an environment, a piece of input.  The system
/// takes less for a command.
constexpr std::size_t kLargestPart = std::size_t{4} << 20;

/// A file that the task writes and that is moved to `destination` when it succeeded.
struct RecipeOutput {
  std::string name;
  std::string staged;                  ///< below the attempt's own directory
  std::string destination;             ///< absolute
  std::optional<std::uint32_t> owner;  ///< the destination's directory must be this user's alone
  bool optional{false};                ///< the task may succeed without it
};

/// A file that the task finds under a name of its own.
struct RecipeLink {
  std::string name;  ///< below the attempt's own directory
  std::string path;  ///< absolute
};

/// What of a recipe is each task's own.
enum class Filled : char {
  Nothing = 'p',
  Paths = 'n',  ///< places in its paths
  Items = 'i',  ///< those, and the item in its command
  Rows = 'r'    ///< the same of items with columns
};

struct Recipe {
  std::vector<std::string> argv;
  std::map<std::string, std::string> variables;  ///< over the environment
  std::string directory;
  std::string standard_input, standard_output, standard_error;
  bool stream_input{false};
  std::string container;           ///< image; empty: none
  ContainerTerms container_terms;  ///< of it
  std::optional<std::uint32_t> umask;
  std::uint64_t output_limit{0};  ///< bytes kept of each captured stream; 0: as the site says
  std::string directory_token;    ///< stands for the attempt's own directory wherever it is written
  std::vector<RecipeOutput> outputs;
  std::vector<std::string> inputs;
  std::vector<RecipeLink> links;       ///< their paths are among the inputs
  std::optional<TaskService> service;  ///< runs argv, where it can
  std::string kind;                    ///< of task, where that was said
  std::vector<std::uint64_t> follows;  ///< arrays whose items that ended well it leaves out
  CpuBinding cpu_binding{};
  bool from_zero{false};  ///< an array from index 0, which has the id 12.1
  Filled filled{Filled::Nothing};
};

std::string to_bytes(const Recipe& recipe);
Recipe recipe_from_bytes(const std::string& bytes);
/// Whether each of its tasks has a text of its own in the store, and what that is.
bool needs_items(const std::string& bytes);
Item item_of(Filled filled, const std::string& stored);
Item item_of(const std::string& bytes, const std::string& stored);
/// The same as a message for a pilot, all but the attempt and what it is granted.
wire::Start start_from_bytes(const std::string& bytes, Filled& filled);
/// Puts in what stands for one task; of one that is alone only its id, into where its output goes.
/// The item is asked for where there is one.
void fill(wire::Start& start, Filled filled, TaskId task, const std::function<std::string()>& item);
/// One sentence where a task of it, or its environment, is larger than a pilot can be sent.
std::optional<std::string> refusal_of_size(const store::Recipe& recipe);

/// A set of environment variables as the store keeps it: the same set gives the same bytes.
std::string environment_bytes(const std::map<std::string, std::string>& environment);

}  // namespace hpcbatch
