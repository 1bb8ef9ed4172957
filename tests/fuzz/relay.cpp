// The byte stream of a relay, and the file in which it says where it listens.
#include "wire/relay.hpp"
#include "fuzz/harness.hpp"

#include <algorithm>
#include <vector>

namespace hpcbatch::fuzz {
namespace {

std::vector<wire::RelayFrame> frames_of(std::string_view bytes, std::size_t step, bool& is_good) {
  wire::RelayFrames reader;
  std::vector<wire::RelayFrame> all;
  is_good = true;
  for (std::size_t at = 0; at < bytes.size() && is_good; at += step) {
    auto frames = reader.receive(bytes.substr(at, step));
    is_good = frames.has_value();
    if (is_good) all.insert(all.end(), frames->begin(), frames->end());
  }
  return all;
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(relay, bytes) {
  Input input(bytes);
  const std::size_t step = std::max<std::size_t>(1, input.number());
  bool whole = true, cut = true;
  const auto frames = frames_of(input.rest(), std::max<std::size_t>(1, input.rest().size()), whole);
  const auto pieces = frames_of(input.rest(), step, cut);
  check(whole == cut, "a stream is good or bad however it is cut");
  check(!whole || frames == pieces, "frames are the same however they are cut");
  std::string again;
  for (const wire::RelayFrame& frame : frames) append(again, frame);
  check(again.size() <= input.rest().size(), "no more comes out than went in");
  bool is_good = true;
  check(frames_of(again, 1000, is_good) == frames && is_good, "frames survive being written");
  if (const auto addresses = wire::parse_relay_file(input.rest(), "relay"))
    check(addresses->size() <= input.rest().size(), "no more addresses than bytes");
}
