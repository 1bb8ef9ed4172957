// The keys of a task as files of tasks and the API have them (docs/api.md): one list, for those who
// read files, for those who answer, and for the help.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hpcbatch {

struct TaskKey {
  enum class Type : std::uint8_t {
    Text,  ///< or a list or a map of texts: numbers in it stay the letters of their author
    Number,
    Boolean,
    Amounts,  ///< a number, or a map of names to numbers
    Map,      ///< of what a service is
    Ways      ///< a list of maps, each of keys as a task has them
  };
  std::string_view name;
  Type type{Type::Text};
  std::string_view example;  ///< a value, as YAML has it
  std::string_view says;
};

std::span<const TaskKey> task_keys();
/// Null: there is none of that name.
const TaskKey* find_task_key(std::string_view name);
/// `; did you mean 'memory'?` where that can be guessed, from other programs' words too; else where
/// the keys are listed.
std::string task_key_hint(std::string_view name);

}  // namespace hpcbatch
