// What a scheduler plugin may add to its interface: what tasks may choose of the batch jobs that
// run them, beside what they need of nodes.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch {

/// A class that is a `Scheduler` may be this too; the engine finds out with a dynamic_cast.  The
/// same promises: no I/O, no clock, callable from any thread.
///
/// A choice is a text KEY=VALUE, such as "account=lab2".  VALUE has letters, digits and `_.:,@/=-`,
/// the last not in front; of `constraint`, `prefer`, `licenses` and `nodelist` also `&|()[]*`.
class Choices {
 public:
  Choices() = default;
  Choices(const Choices&) = delete;
  Choices& operator=(const Choices&) = delete;
  virtual ~Choices() = default;

  /// The keys that this batch system has a word for.  Nothing by which a batch job would be found
  /// under another name, on another cluster or with other nodes than were asked for.
  virtual std::vector<std::string> choice_keys() const = 0;
  /// Options for `AllocationRequest::options`, behind those of the site: they go before these.
  virtual std::vector<std::string> options_for(const std::vector<std::string>& choices) const = 0;
};

}  // namespace hpcbatch
