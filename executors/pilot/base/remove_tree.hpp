// Removes a directory with all in it, never following a link out of it.
#pragma once

#include <string>

namespace hpcbatch::pilot {

/// False where something of it is left.
bool remove_tree(const std::string& path);
/// A file, a link or a whole directory `name` in the directory `parent`; true where it is not
/// there.
bool remove_entry(int parent, const std::string& name);
/// What is in it, and not the directory itself.
bool empty_tree(const std::string& path);

}  // namespace hpcbatch::pilot
