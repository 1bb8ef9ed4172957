// The folder of one job in the workspace: `HOST-INODE-TIME/` with `input/`, `output/` and `job.sh`.
#pragma once

#include "hpcbatch/result.hpp"
#include "model/time.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
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

}  // namespace hpcbatch
