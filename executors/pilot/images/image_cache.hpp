// The images of a site: each pulled once, kept within a size, brought to a node's runtime.  All of
// it may take long: for a process beside the pilot's loop.
#pragma once

#include "pilot/policy/image_pull.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

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
