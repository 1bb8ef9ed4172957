// What a task runs, as the store keeps it and a pilot gets it.
#pragma once

#include "model/ids.hpp"
#include "model/item.hpp"
#include "model/needs.hpp"
#include "model/task.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

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

/// What of a recipe is each task's own.
enum class Filled : char {
  Nothing = 'p',
  Paths = 'n',  ///< places in its paths
  Items = 'i',  ///< those, and the item in its command
  Rows = 'r'    ///< the same of items with columns
};

/// The store keeps a recipe as the message that a pilot is sent, all but the attempt and what it is
/// granted, behind one letter that says what is each task's own.
std::string to_bytes(const wire::Start& start, Filled filled);
Filled filled_in(const std::string& bytes);
wire::Start start_from_bytes(const std::string& bytes);
/// Whether each of its tasks has a text of its own in the store, and what that is.
bool needs_items(const std::string& bytes);
Item item_of(Filled filled, const std::string& stored);
Item item_of(const std::string& bytes, const std::string& stored);
/// What stands for a task in its paths.
PlaceValues place_values(const wire::Start& start, TaskId task);
/// Puts in what stands for one task; of one that is alone only its id and its number, into the names
/// of its streams' files.
/// The item is asked for where there is one.
void fill(wire::Start& start, Filled filled, TaskId task, const std::function<std::string()>& item);
/// Added to it: the task's own variables, a file that it writes, `staged` below the attempt's own
/// directory, moved to the absolute `destination` when it succeeded; its service, its container.
void add_variables(wire::Start& start, const std::map<std::string, std::string>& variables);
void add_output(wire::Start& start, const std::string& name, const std::string& staged,
                const std::string& destination, bool optional);
/// Each of its tasks, which have these indices, has a number as a batch job has.
void set_numbered(wire::Start& start, const IndexSet& indices);
void set_service(wire::Start& start, const TaskService& service);
void set_container(wire::Start& start, const std::string& image, const ContainerTerms& terms);
/// One sentence where a task of it, or its environment, is larger than a pilot can be sent.
std::optional<std::string> refusal_of_size(const store::Recipe& recipe);

/// A set of environment variables as the store keeps it: the same set gives the same bytes.
std::string environment_bytes(const std::map<std::string, std::string>& environment);

}  // namespace hpcbatch
