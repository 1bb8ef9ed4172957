#include "batch/slurm_dependency.hpp"

#include "batch/directives.hpp"
#include "model/batch_number.hpp"
#include "model/index_set.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch::batch {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kDependencies{
    {{"afterok", "--after"},
     {"afterany", "--after-any"},
     {"aftercorr", "--after-each"},
     {"after", "--after-start"},
     {"afternotok", "--after-failed"}}};

/// Where the part that begins there ends; within brackets is none.
std::size_t part_end(std::string_view text, std::size_t begin, char separator) {
  bool is_within = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == '[') is_within = true;
    if (text[at] == ']') is_within = false;
    if (text[at] == separator && !is_within) return at;
  }
  return text.size();
}

/// `12` of `2000000012` and `2000000012_*`; `12_3`, `12_5` of `2000000012_[3,5]`, the elements with
/// these indices of the user's.
std::vector<std::string> ids_of(std::string_view text) {
  const std::size_t line = std::min(text.find('_'), text.size());
  const auto number = number_in<std::uint64_t>(text.substr(0, line));
  std::string_view indices = text.substr(std::min(line + 1, text.size()));
  if (indices.starts_with('[') && indices.ends_with(']'))
    indices = indices.substr(1, indices.size() - 2);
  const bool is_whole = line == text.size() || indices == "*";
  const auto set = is_whole ? std::nullopt : parse_index_set(indices);
  constexpr std::uint64_t kMost = 10'000;
  if (!number || (!is_whole && (!set || set->empty() || set->size() > kMost)))
    throw std::invalid_argument("'" + std::string(text) +
                                "' is no number of a job; write 2000000012, or 2000000012_3");
  const auto id = id_of_batch_number(*number);
  if (!id)
    throw std::invalid_argument(
        "job " + std::string(text) +
        " is the batch system's own; tasks of hpcbatch can wait for each other, by numbers from "
        "2000000001");
  if (is_whole) return {std::to_string(id->value)};
  std::vector<std::string> ids;
  const auto ranges = set->ranges();
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range)
    for (std::uint64_t index = range->first; index <= range->last; ++index)
      ids.push_back(std::to_string(id->value) + "_" + std::to_string(index));
  return ids;
}

void add_ids(std::string_view option, std::string_view text, std::vector<std::string>& options) {
  const std::size_t plus = std::min(text.find('+'), text.size());
  std::string delay;
  if (plus < text.size()) {
    const auto minutes = number_in<std::uint64_t>(text.substr(plus + 1));
    if (option != "--after-start" || !minutes || *minutes > 1'000'000)
      throw std::invalid_argument(
          "'" + std::string(text) +
          "': only `after` takes a time, in minutes, as after:2000000012+10");
    delay = "+" + std::to_string(*minutes * 60) + "s";
  }
  for (const std::string& id : ids_of(text.substr(0, plus))) {
    options.emplace_back(option);
    options.push_back(id + delay);
  }
}

void add_one(std::string_view one, std::vector<std::string>& options) {
  const std::size_t colon = std::min(one.find(':'), one.size());
  const std::string word = lower_case(std::string(one.substr(0, colon)));
  if (word == "singleton" && colon == one.size()) {
    options.emplace_back("--singleton");
    return;
  }
  std::string_view kind = word;
  // A number alone is what sbatch called afterany before it had words.
  if (number_in<std::uint64_t>(kind))
    kind = "afterany";
  else
    one.remove_prefix(std::min(colon + 1, one.size()));
  if (kind == "afterburstbuffer")
    throw std::invalid_argument("there are no burst buffers to wait for; use afterany");
  const auto* const known = std::find_if(kDependencies.begin(), kDependencies.end(),
                                         [&](const auto& pair) { return pair.first == kind; });
  if (known == kDependencies.end())
    throw std::invalid_argument("'" + std::string(kind) +
                                "' cannot be waited for; after, afterany, afterok, afternotok, "
                                "aftercorr and singleton can, "
                                "of tasks of hpcbatch");
  if (one.empty()) throw std::invalid_argument("it names no job");
  for (std::size_t at = 0; at <= one.size();) {
    const std::size_t stop = part_end(one, at, ':');
    add_ids(known->second, one.substr(at, stop - at), options);
    at = stop + 1;
  }
}

}  // namespace

std::vector<std::string> slurm_dependency(const std::string& text) {
  const bool any = text.find('?') != std::string::npos;
  if (any && part_end(text, 0, ',') != text.size())
    throw std::invalid_argument("`,` means all of them and `?` one of them; use one of the two");
  std::vector<std::string> options;
  // A loop whose list is empty waits for nothing.
  if (text.empty() || text == "0") return options;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = part_end(text, begin, any ? '?' : ',');
    add_one(std::string_view(text).substr(begin, end - begin), options);
    begin = end + 1;
  }
  if (any) options.emplace_back("--after-one");
  return options;
}

}  // namespace hpcbatch::batch
