#include "gpu/devices/judge.hpp"

namespace hpcbatch::gpu {
namespace {

/// Seconds.  A GPU that has work is slowed down for moments; one whose cooling is broken stays so.
constexpr unsigned kTooLongHot = 60;

}  // namespace

std::optional<std::string> Judge::look(const Sample& sample, bool is_regular) {
  // Looks between those of each second do not count as seconds.
  if (is_regular) hot_for_ = sample.is_hot ? hot_for_ + 1 : 0;
  std::string why = sample.trouble;
  if (why.empty() && sample.broken_bits > broken_bits_)
    why = "its memory has errors that ECC could not mend";
  if (why.empty() && hot_for_ >= kTooLongHot)
    why = "it has been slowed down by its heat for a minute";
  if (why.empty() || is_told_) return std::nullopt;
  is_told_ = true;
  return why;
}

}  // namespace hpcbatch::gpu
