// What a tool plugin may add to its interface: facts of input files (a recording's length, an image's
// width), by name, which the expressions of a tool's resources may use.
#pragma once

#include "hpcbatch/tool.hpp"

#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

struct FactDescription {
  /// What a list of files has, made of what each has.
  enum class OfMany { Sum, Largest };
  std::string name;  ///< letters, digits and `_`, no digit first; `size` and `count` are the core's
  OfMany of_many{OfMany::Sum};
};

/// A class that is a `Tool` may be this too; the engine finds out with a dynamic_cast.  Not part of
/// `Tool`, so that plugins that know nothing of it stay as they are.
class InputFacts {
 public:
  InputFacts() = default;
  InputFacts(const InputFacts&) = delete;
  InputFacts& operator=(const InputFacts&) = delete;
  virtual ~InputFacts() = default;

  /// Always the same.
  virtual std::vector<FactDescription> facts() const = 0;
  /// All of them, none negative, of one file as it is now.  This, and this alone of a tool, reads
  /// files: a file as large as may be, within a second.  Asked only where a resource of the tool
  /// depends on it.  Throws std::exception with one sentence that names the file where it has none.
  virtual std::map<std::string, double> facts_of(const InputFile& file) const = 0;
};

}  // namespace hpcbatch
