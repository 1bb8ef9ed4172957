// The folder of a split's parts: what is there of them, and by which key the split goes on.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch {

class SplitFolder {
 public:
  /// Makes the folder, or takes up the split that was begun there. `words` are all that decides the
  /// results: another split is refused.  Throws CommandError.
  SplitFolder(std::string path, const std::vector<std::string>& words);

  /// Of this split and no other.
  const std::string& key() const { return key_; }
  /// What of it is a split's own; the folder too, where nothing else is in it.
  void remove() const;

 private:
  std::string path_;
  std::string key_;
};

}  // namespace hpcbatch
