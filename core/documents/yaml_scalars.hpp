// Values of a site's entry as words of YAML that stay on one line.
#pragma once

#include "model/site.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::entry {

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
