#include "gpu/devices/device.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>

namespace hpcbatch::gpu {
namespace {

/// Seconds.  A GPU that has work is slowed down for moments; one whose cooling is broken stays so.
constexpr unsigned kTooLongHot = 60;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, end);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    words.push_back(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// Numbers of the node, of which this batch job sees as many as there are words.
bool are_of_whole_node(const std::vector<std::string_view>& words, std::size_t shown) {
  return words.size() <= shown &&
         std::all_of(words.begin(), words.end(),
                     [](std::string_view word) { return number_in<unsigned>(word).has_value(); }) &&
         std::any_of(words.begin(), words.end(), [shown](std::string_view word) {
           return *number_in<unsigned>(word) >= shown;
         });
}

const Device* named(const std::vector<Device>& all, std::string_view word) {
  if (const auto index = number_in<unsigned>(word)) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Device& device) {
      return device.index == *index && !device.is_slice;
    });
    return found == all.end() ? nullptr : &*found;
  }
  const Device* only = nullptr;
  for (const Device& device : all) {
    if (word.size() < 5 || !device.uuid.starts_with(word)) continue;
    if (only != nullptr) return nullptr;
    only = &device;
  }
  return only;
}

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

std::vector<Device> visible(const std::vector<Device>& all, std::optional<std::string_view> said) {
  if (!said) return all;
  const std::vector<std::string_view> words = words_of(*said);
  if (are_of_whole_node(words, all.size()))
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(words.size())};
  std::vector<Device> found;
  for (const std::string_view word : words) {
    const Device* device = named(all, word);
    if (device == nullptr) break;
    found.push_back(*device);
  }
  return found;
}

}  // namespace hpcbatch::gpu
