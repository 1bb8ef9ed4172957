#include "batch/slurm_dependency.hpp"

#include "batch/directives.hpp"
#include "model/batch_number.hpp"

#include <algorithm>
#include <array>
#include <cctype>
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

/// `12_3` of `2000000012_3`, the element with the user's index 3.
std::string id_of(std::string_view text) {
  const std::size_t line = std::min(text.find('_'), text.size());
  const auto number = number_in(text.substr(0, line));
  const bool has_index = line < text.size();
  const auto index = has_index ? number_in(text.substr(line + 1)) : std::nullopt;
  if (!number || (has_index && !index))
    throw std::invalid_argument("'" + std::string(text) +
                                "' is no number of a job; write 2000000012, or 2000000012_3");
  const auto id = id_of_batch_number(*number);
  if (!id)
    throw std::invalid_argument(
        "job " + std::string(text) +
        " is the batch system's own; tasks of hpcbatch can wait for each other, by numbers from "
        "2000000001");
  return std::to_string(id->value) + (index ? "_" + std::to_string(*index) : "");
}

void add_id(std::string_view option, std::string_view text, std::vector<std::string>& options) {
  const std::size_t plus = std::min(text.find('+'), text.size());
  std::string delay;
  if (plus < text.size()) {
    const auto minutes = number_in(text.substr(plus + 1));
    if (option != "--after-start" || !minutes || *minutes > 1'000'000)
      throw std::invalid_argument(
          "'" + std::string(text) +
          "': only `after` takes a time, in minutes, as after:2000000012+10");
    delay = "+" + std::to_string(*minutes * 60) + "s";
  }
  options.emplace_back(option);
  options.push_back(id_of(text.substr(0, plus)) + delay);
}

void add_one(std::string_view one, std::vector<std::string>& options) {
  if (one == "singleton") {
    options.emplace_back("--singleton");
    return;
  }
  const std::size_t colon = std::min(one.find(':'), one.size());
  std::string word(one.substr(0, colon));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string_view kind = word;
  // A number alone is what sbatch called afterany before it had words.
  if (number_in(kind))
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
    const std::size_t stop = std::min(one.find(':', at), one.size());
    add_id(known->second, one.substr(at, stop - at), options);
    at = stop + 1;
  }
}

}  // namespace

std::vector<std::string> slurm_dependency(const std::string& text) {
  const bool any = text.find('?') != std::string::npos;
  if (any && text.find(',') != std::string::npos)
    throw std::invalid_argument("`,` means all of them and `?` one of them; use one of the two");
  std::vector<std::string> options;
  // A loop whose list is empty waits for nothing.
  if (text.empty()) return options;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(any ? '?' : ',', begin), text.size());
    add_one(std::string_view(text).substr(begin, end - begin), options);
    begin = end + 1;
  }
  if (any) options.emplace_back("--after-one");
  return options;
}

}  // namespace hpcbatch::batch
