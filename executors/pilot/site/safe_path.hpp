// Paths below a folder that are walked step by step, never through a link and never out of it.
#pragma once

#include "posix/fd.hpp"
#include "wire/file_store.hpp"

#include "hpcbatch/result.hpp"

#include <optional>
#include <string>
#include <variant>

namespace hpcbatch::pilot {

/// Why something could not be done with a file, in a kind that a program and words that people
/// understand.
struct FileRefusal {
  wire::FileTrouble kind{wire::FileTrouble::Other};
  std::string text;
};
using FileOutcome = std::optional<FileRefusal>;

/// `what`: "write a/b"; to be called before errno is lost.
FileRefusal refused(const std::string& what, int error);

/// A folder below `root`, by a plain path (wire::is_plain_path) or an empty one for `root` itself.
std::variant<Fd, FileRefusal> enter(int root, const std::string& path);
/// The same; what is not there is made, mode 0700.
std::variant<Fd, FileRefusal> enter_or_make(int root, const std::string& path);

/// "a/b" and "c" of "a/b/c".
struct Step {
  std::string folder;
  std::string name;
};
Step last_step(const std::string& path);

}  // namespace hpcbatch::pilot
