// Where a job may have its results put.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// What was found out about a destination, from the directory's own descriptor.
struct DestinationFacts {
  enum class Existing { Nothing, File, Link, Other };
  std::string real_directory;  ///< without links
  std::uint32_t directory_owner{0};
  std::uint32_t directory_mode{0};
  bool is_dropbox{false};  ///< the directory is the drop box itself
  Existing existing{Existing::Nothing};
  std::uint32_t existing_owner{0};  ///< of a result that we published: its submitter
  bool submitter_can_write{false};  ///< the owner of the job could write the directory himself
  bool is_engines_user{false};      ///< the job is the engine's own user's
};

/// The rule: the directory belongs to the owner of the job file and nobody else can write it, or it
/// lies below one of `allow` (absolute, without links).  What stands there already may be replaced
/// only if it is a regular file, and the owner's, or in a directory allowed by name one that the
/// owner could have replaced himself (in a sticky one by its own owner only).  Empty: it may; else
/// why not.
std::string why_not_there(const DestinationFacts& facts, std::uint32_t owner_of_job,
                          const std::vector<std::string>& allow);

/// Whether the text can be a destination at all: absolute, with a name at its end, without `..`.
std::string why_no_destination(std::string_view path);

/// Whether `path` is `directory` or below it.
bool is_below(std::string_view path, std::string_view directory);

}  // namespace hpcbatch
