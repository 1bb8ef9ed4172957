// Values of a site's entry as words of YAML that stay on one line.
#pragma once

#include "model/site.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::entry {

/// YAML looks for the colon of a key within 1,024 characters (YAML 1.2, section 7.4); a longer one
/// is marked by `? `, and the colon stands on the next line.
constexpr std::size_t kLongestKey = 1000;
/// In a list of one line yaml-cpp takes these for texts; on a line of their own they begin a list, a
/// key or a value, so that they need quotes there.
bool begins_as_indicator(std::string_view text);
std::string quoted(std::string_view text);
/// Plain where that is what YAML reads as this very text, in a list or map of one line too.
std::string scalar(std::string_view text);
/// `[a, "b c"]`
std::string list(const std::vector<std::string>& texts);
/// `slurm`, or `{plugin: slurm, its: own keys}`; `config` is the plugin's own YAML.
std::string plugin(const std::string& name, const std::string& config);
std::string duration(Duration time);
std::string size(std::uint64_t bytes);
const char* link_word(LinkKind link);

}  // namespace hpcbatch::entry
