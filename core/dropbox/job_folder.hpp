// The folder of one job in the workspace: `HOST-INODE-TIME/` with `input/`, `output/` and `job.sh`.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/tool.hpp"
#include "model/ids.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// All job folders of a drop box lie in one workspace, which belongs to us alone.
class Workspace {
 public:
  /// Makes the directory if need be (mode 0700).  Refused where the guard of trusted paths refuses it,
  /// or a group may write it.
  static Result<Workspace> open(const std::string& path, const std::string& trust_group = {});

  /// A free name for the folder of a job, none of `given`, which may not be made yet; makes nothing.
  std::string name_folder(std::uint64_t inode, Time now,
                          const std::set<std::string>& given = {}) const;
  /// Whether a path that was read from a file is one that `name_folder` could have given.
  bool is_job_folder(const std::string& path) const;
  /// Makes the folder anew, empty but for `input/` and `output/`.
  Result<void> make(const std::string& folder) const;
  /// Removes it with all that is in it; never anything else.
  void remove(const std::string& folder) const;

  /// What was taken, where nobody else can write: beside the job's folder, on disk when this
  /// returns.
  struct Taken {
    std::string name;      ///< of the job file
    std::string document;  ///< as it was written into the drop box
  };
  Result<void> note_taken(const std::string& folder, const Taken& taken) const;
  std::optional<Taken> taken(const std::string& folder) const;
  void forget_taken(const std::string& folder) const;

 private:
  explicit Workspace(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The script is written last and appears whole: where it is, the folder is complete.  Its mode is
/// 0750.
Result<void> write_script(const std::string& folder, const std::string& name,
                          std::string_view text);

/// The text of `SCRIPT.template` in the first folder that has it.  No value where none has; an
/// error where it cannot be read or others could have written it.
Result<std::optional<std::string>> find_template(const std::vector<std::string>& folders,
                                                 const std::string& script,
                                                 const std::string& trust_group = {});

/// What is run for a script: itself where it names its interpreter, else `sh`.
std::vector<std::string> command_of(const std::string& script_path, std::string_view text);

// Names under which a job's files lie in its own folder: safe to stand bare in a shell script, and
// all different.

/// Made of letters, digits, `_`, `.`, `-`, beginning with a letter, digit or `_`; at most 120
/// bytes.  The last part of `path` stays as it is where it is such a name already, for templates
/// use it.
std::string staged_name(const std::string& path, std::set<std::string>& taken);

// Stages a job's inputs into its folder.

/// Looks at an input without reading it: a regular file.  A job of another user than ours may only
/// name what that user can read: root opens it as him, another engine's user computes it from modes
/// and ACLs of the file and of all folders above it.  The text of an error says which file and why.
Result<InputFile> look_at_input(const std::string& path, std::uint32_t owner_of_job);

/// Copies it to `target`, which must not exist.  A file that changes meanwhile is copied once more,
/// then refused as changed, and so is one of more than `most` bytes.  Holes stay holes.  Its bytes.
/// Blocks for as long as the copying takes.
Result<std::uint64_t> stage_input(const std::string& path, const std::string& target,
                                  std::uint32_t owner_of_job, std::uint64_t most);

/// Whether two paths lead the job's owner to one file.
bool are_same_file(const std::string& a, const std::string& b, std::uint32_t owner_of_job);

// Copies the content of one open file to another.

/// From where both stand to the end; shares blocks where the file system can.  Blocks.
Result<void> copy_content(int from, int to);
/// Writes all of it.
Result<void> write_content(int to, std::string_view text);
/// `WHAT: reason`, from errno as it is now; a full disk and the like are transient.
Error errno_error(const std::string& what);

/// Renames within a directory, where nothing stands at `to`; false with errno EEXIST where
/// something does.  On a file system that knows neither RENAME_NOREPLACE nor hard links it looks
/// before.
bool rename_to_nothing(int directory, const std::string& from, const std::string& to);

}  // namespace hpcbatch
