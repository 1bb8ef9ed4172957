// What a task can say: the one table of its keys.  The API reads by it, the command line takes its
// options from it, files of tasks their keys, Python its keyword arguments (written from it by
// tests/ready/task_docs), the documentation its tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hpcbatch {

struct TaskKey {
  enum class Type : std::uint8_t {
    Text,
    Word,          ///< without blanks
    WordList,      ///< a list of them
    Ids,           ///< a list of tasks
    Range,         ///< of indices
    Whole,         ///< a whole number from `least` to `most`
    Cpus,          ///< a number above 0
    Flag,          ///< true or false
    Choice,        ///< one of `words`
    Size,          ///< bytes
    SizeOrNone,    ///< or no bound
    TimeSpan,      ///< seconds
    Factor,        ///< from 1 to 100, with an x behind it or without
    Signal,        ///< its name or number, and how long before the end: the next field
    Moment,        ///< to come: seconds since 1970, or as people write one
    Gpus,          ///< a number, a kind with a number, or what they must be
    Capability,    ///< of CUDA
    Ways,          ///< a list of needs
    Amounts,       ///< a map of names to numbers
    Folder,        ///< to run in
    File,          ///< a path, taken from that folder
    Stream,        ///< the same, or none
    Folders,       ///< a list of absolute paths
    Files,         ///< a map of names to paths
    Variables,     ///< a map of names to texts
    Values,        ///< a map of names to texts, numbers, true or false
    CommandWords,  ///< a list of words
    ItemList,      ///< a list of texts, lists or maps
    ItemTexts,     ///< a list of texts
    Image,         ///< a text, or a map of what a container is
    Service        ///< a map
  };
  std::string_view name;
  Type type{Type::Text};
  std::string_view example;     ///< a value, as YAML has it
  std::string_view says;        ///< what it means, for people
  std::string_view standard{};  ///< what holds where nothing is said
  std::string_view option{};    ///< of `run`, `submit` and `split`, with what stands behind it
  std::string_view group{};     ///< of options, in the help
  struct More {
    std::string_view python{};  ///< its keyword argument; empty: its name; "-": none of that kind
    std::string_view words{};   ///< of a choice, with blanks between
    std::int64_t least{0}, most{0};
    bool all{false};          ///< the word `all` is a value too: what a node has
    bool only_submit{false};  ///< `run` and `split` have no such option
    /// The number of its field in `Start` (core/wire/wire.proto): the pilot alone acts on it.  0:
    /// the API has a place for it (core/api/read/read_task.cpp).
    std::uint32_t field{0};
    std::string_view since{"1.0"};
  };
  More more{};

  /// `--mem` of `--mem SIZE`, and `SIZE`; empty: there is none.
  constexpr std::string_view flag() const { return option.substr(0, option.find(' ')); }
  constexpr std::string_view operand() const {
    return flag().size() == option.size() ? "" : option.substr(flag().size() + 1);
  }
};

std::span<const TaskKey> task_keys();
/// Null: there is none of that name.
const TaskKey* find_task_key(std::string_view name);
/// `; did you mean 'memory'?` where that can be guessed, from other programs' words too; else where
/// the keys are listed.
std::string task_key_hint(std::string_view name);

}  // namespace hpcbatch
