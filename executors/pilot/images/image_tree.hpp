// The root file system of an image on its way to the disk.  Whatever its layers say, nothing is written, linked or removed but below
// its folder: names are walked as the image's own processes would, with the folder as their root.
#pragma once

#include "posix/files.hpp"

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hpcbatch::pilot {

/// What is wrong with an image, or with the disk that it goes to: the end of one sentence.
struct BadImage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a whole image may still have; what is taken from it is gone.
struct ImageBudget {
  std::uint64_t bytes{std::uint64_t{100} << 30};  // of files, holes counted
  std::uint64_t entries{kMostEntries};
  static constexpr std::uint64_t kMostEntries = 2'000'000;
};

/// A name in an image: its steps from the root.
using ImagePath = std::vector<std::string>;

/// "./a//b" and "/a/b" are {a, b}; throws BadImage for one that has "..", or goes too deep.
ImagePath image_path(const std::string& name);
/// The other way, for people: "a/b".
std::string shown(const ImagePath& path);

/// All throw BadImage.  What is there is replaced, but for a folder by a folder.  One thread.
class ImageTree {
 public:
  /// Who resolves links: the kernel (openat2, Linux 5.6), or we do, step by step, where it cannot.
  enum class Walk { Kernel, Steps };

  /// Makes the folder, which must not be there.
  explicit ImageTree(const std::string& folder, Walk walk = Walk::Kernel);

  void begin_layer();
  void put_folder(const ImagePath& path, mode_t mode, timespec changed);
  /// Open for writing and empty.
  Fd put_file(const ImagePath& path, mode_t mode);
  void put_link(const ImagePath& path, const std::string& target);
  void put_hard_link(const ImagePath& path, const ImagePath& target);
  /// What earlier layers have there is gone; what this one has put there stays.
  void take_away(const ImagePath& path);
  void empty_folder(const ImagePath& path);
  /// Folders get the times that the layer gave them.
  void end_layer();

  bool has(const ImagePath& path);

 private:
  /// The folder; one that is missing is made or, where it is not to be, not opened.
  Fd folder(const ImagePath& path, bool make);
  Fd folder_by_kernel(const ImagePath& path) const;
  Fd next_folder(int at, const std::string& name, bool make);
  Fd folder_by_steps(const ImagePath& path, bool make);
  Fd parent(const ImagePath& path);
  void make_room(int folder, const ImagePath& path);
  void purge(int folder, unsigned depth);
  void purge_entry(int folder, const std::string& name, unsigned depth);
  void was_made(int folder, const std::string& name);

  Fd root_;
  Walk walk_;
  std::unordered_set<ino_t> made_;  // by this layer
  std::vector<std::pair<ImagePath, timespec>> folder_times_;
};

}  // namespace hpcbatch::pilot
