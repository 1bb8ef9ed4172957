// Which folders of this machine a site sees, and under what names.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// A folder here and the same folder there, both absolute and without a slash at the end ("/" alone
/// but for that).
struct SharedFolder {
  std::string here;
  std::string there;
  friend bool operator==(const SharedFolder&, const SharedFolder&) = default;
};
using PathMap = std::vector<SharedFolder>;

/// All of this machine's files, under the same names.
PathMap everything_shared();
/// The name there of a file here, by the innermost folder that holds it; nothing where none does.
/// `..` is taken for what it is by name: links are not looked at.
std::optional<std::string> seen_as(const PathMap& map, const std::string& path);

}  // namespace hpcbatch
