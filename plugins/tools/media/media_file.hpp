// What a recording or an image is, by its head and, where that does not say how long it is, by a part
// of its packets.  Nothing is decoded for it but the first few frames.
#pragma once

#include <string>

namespace hpcbatch {

/// 0 is what it does not have.
struct MediaFacts {
  double seconds{0};  ///< an estimate where no head tells it and the file is large
  double frames{0};
  double channels{0};
  double sample_rate{0};
  double width{0};
  double height{0};
};

/// Opens that file and no other, whatever it says of others.  Throws std::runtime_error.
MediaFacts look_at_media(const std::string& path);

}  // namespace hpcbatch
