#include "cli/parse/gpu_options.hpp"

#include "cli/parse/flags.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/spelling.hpp"
#include "hardware/gpu_counts.hpp"
#include "hardware/gpu_kind.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace hpcbatch::detail {
namespace {

void set_need(const std::string& key, const std::string& value, WayOption& way) {
  const std::vector<std::string> known{"cpus", "mem",        "disk",
                                       "gpus", "gpu-memory", "gpu-capability"};
  if (key == "cpus") {
    way.cpus = parse_cpus(value);
  } else if (key == "mem" || key == "memory") {
    way.memory = checked_size(value);
  } else if (key == "disk") {
    way.disk = checked_size(value);
  } else if (key == "gpus") {
    add_gpus(value, way);
  } else if (key == "gpu-memory") {
    way.gpu_memory = checked_size(value);
  } else if (key == "gpu-capability") {
    way.gpu_capability = checked_capability(value);
  } else {
    throw std::invalid_argument(
        fmt::format("'{}' is none of {} (the time, the site and all else are the same for all ways "
                    "and are said once){}",
                    key, fmt::join(known, ", "), spelling_hint(key, known)));
  }
}

}  // namespace

template <class Asked>
void add_gpus(const std::string& text, Asked& asked) {
  auto [kind, count] = parse_gpus(text);
  if (kind.empty())
    asked.gpus = count;
  else
    asked.gpu_kinds.emplace_back(std::move(kind), count);
  if (asked.gpus && !asked.gpu_kinds.empty())
    throw std::invalid_argument("say a number of any kind or numbers by kind, not both");
}
template void add_gpus(const std::string& text, WorkOptions& asked);
template void add_gpus(const std::string& text, WayOption& asked);

std::string checked_gpus(const std::string& text) {
  parse_gpus(text);
  return text;
}

std::string checked_capability(const std::string& text) {
  if (!parse_capability(text))
    throw std::invalid_argument("'" + text + "' is no compute capability of CUDA, as 8.0");
  return text;
}

WayOption parse_way(const std::string& text) {
  WayOption way;
  std::set<std::string> said;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find(',');
    const std::string word(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw std::invalid_argument(
          fmt::format("'{}' does not say what is needed; write it as gpus=1,cpus=4", text));
    }
    const std::string key = word.substr(0, equals);
    if (!said.insert(key == "memory" ? "mem" : key).second)
      throw std::invalid_argument(fmt::format("says {} twice", key));
    set_need(key, word.substr(equals + 1), way);
  }
  if (text.empty()) throw std::invalid_argument("is empty; write it as gpus=1,cpus=4");
  return way;
}

}  // namespace hpcbatch::detail
