// The images of a site: each pulled once, kept within a size, brought to a node's runtime.  All of
// it may take long: for a process beside the pilot's loop.
#pragma once

#include "pilot/policy/image_pull.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// Keeps two pilots of a site from pulling one image at once.  A file that is made where there is
/// none: all shared file systems can do that, not all can lock.  What is pulled appears whole all the
/// same, so a lock that is lost costs a second pull and no more.
class PullLock {
 public:
  explicit PullLock(std::string path) : path_(std::move(path)) {}
  PullLock(const PullLock&) = delete;
  PullLock& operator=(const PullLock&) = delete;
  ~PullLock();

  /// False, with errno EEXIST where another has it and gives signs of life.
  bool take();
  /// A sign of life; at least one every half minute.
  void renew() const;

 private:
  bool is_given_up() const;

  std::string path_;
  bool is_held_{false};
};

struct ImageOrder {
  FoundRuntime runtime;
  Image image;
  std::string cache;                     // folder; made where it is not there
  std::uint64_t limit{};                 // bytes
  std::vector<std::string> environment;  // of the programs that pull: lines NAME=value
};

struct ImageAnswer {
  enum class Said { Ready, Transient, Missing };
  Said said{Said::Missing};
  std::string
      text;  // the file, the folder or the number that the runtime takes; or what went wrong
};

/// Whether there is anything to do before it can be run.
bool has_to_be_prepared(const FoundRuntime& runtime, const Image& image);

ImageAnswer prepare_image(const ImageOrder& order);

/// The file or folder is used still.
void say_used(const std::string& kept);

std::string to_text(const ImageAnswer& answer);
ImageAnswer image_answer(const std::string& text);

}  // namespace hpcbatch::pilot
