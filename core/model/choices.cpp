#include "model/choices.hpp"

#include <algorithm>
#include <cctype>

namespace hpcbatch {
namespace {

constexpr char kBetween = '+';  // in no name of the configuration and in no choice
constexpr std::size_t kLongest = 200;

/// Calls `take` for each piece of a text.
template <class Take>
void each_piece(std::string_view text, char between, Take take) {
  while (true) {
    const auto end = std::min(text.find(between), text.size());
    take(text.substr(0, end));
    if (end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

bool has_tag(const std::vector<std::string>& tags, const std::string& asked) {
  if (std::binary_search(tags.begin(), tags.end(), asked)) return true;
  const std::string key(key_of(asked));
  const bool any_of = key == "partition";
  if (!any_of && (key != "constraint" || asked.find_first_of("|[](*") != std::string::npos))
    return false;
  std::size_t pieces = 0;
  std::size_t found = 0;
  each_piece(std::string_view(asked).substr(key.size() + 1), any_of ? ',' : '&',
             [&](std::string_view name) {
               const std::string tag = key + "=" + std::string(name);
               found += std::binary_search(tags.begin(), tags.end(), tag) ? 1 : 0;
               ++pieces;
             });
  return any_of ? found != 0 : found == pieces;
}

/// Some programs of batch systems hand a line to a shell (SLURM's qsub).
bool is_plain(std::string_view key, std::string_view value) {
  static constexpr std::string_view kPlain = "_.:,@/=-";
  static constexpr std::string_view kOfExpressions = "&|()[]*";
  const bool may_be_expression =
      key == "constraint" || key == "prefer" || key == "licenses" || key == "nodelist";
  return !value.empty() && value.front() != '-' && value.size() <= kLongest &&
         std::all_of(value.begin(), value.end(), [&](unsigned char c) {
           return (c < 128 && std::isalnum(c) != 0) ||
                  kPlain.find(static_cast<char>(c)) != std::string_view::npos ||
                  (may_be_expression &&
                   kOfExpressions.find(static_cast<char>(c)) != std::string_view::npos);
         });
}

}  // namespace

std::string_view key_of(std::string_view tag) {
  const auto end = tag.find('=');
  return end == std::string_view::npos ? std::string_view{} : tag.substr(0, end);
}

bool may_choose(const Site& site, std::string_view tag) {
  const std::string_view key = key_of(tag);
  if (!site.choices || key.empty() || !is_plain(key, tag.substr(key.size() + 1))) return false;
  const auto values = site.choices->find(std::string(key));
  if (values == site.choices->end()) return false;
  const std::string_view value = tag.substr(key.size() + 1);
  return values->second.empty() ||
         std::find(values->second.begin(), values->second.end(), value) != values->second.end();
}

std::vector<std::string> choices_of(const Needs& needs, const Site& site) {
  std::vector<std::string> choices;
  for (const std::string& tag : needs.tags) {
    const auto of_key = [&](const std::string& other) { return key_of(other) == key_of(tag); };
    if (may_choose(site, tag) && std::count_if(needs.tags.begin(), needs.tags.end(), of_key) == 1)
      choices.push_back(tag);
  }
  return choices;
}

bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& asked) {
  return std::all_of(asked.begin(), asked.end(),
                     [&](const std::string& tag) { return has_tag(tags, tag); });
}

bool has_tags(const std::vector<std::string>& tags, const std::vector<std::string>& made_for,
              const Needs& needs) {
  return has_tags(tags, needs.tags) &&
         std::includes(needs.tags.begin(), needs.tags.end(), made_for.begin(), made_for.end());
}

Shape made_for(const Shape& configured, const std::vector<std::string>& choices) {
  Shape shape = configured;
  shape.made_for.clear();
  for (const std::string& choice : choices) {
    if (std::binary_search(configured.tags.begin(), configured.tags.end(), choice)) continue;
    std::erase_if(shape.tags,
                  [&](const std::string& tag) { return key_of(tag) == key_of(choice); });
    shape.made_for.push_back(choice);
    shape.name += kBetween + choice;
  }
  shape.tags.insert(shape.tags.end(), shape.made_for.begin(), shape.made_for.end());
  std::sort(shape.tags.begin(), shape.tags.end());
  return shape;
}

std::string configured_name(std::string_view shape) {
  return std::string(shape.substr(0, shape.find(kBetween)));
}

std::vector<std::string> choices_in_name(std::string_view shape) {
  std::vector<std::string> choices;
  each_piece(shape, kBetween, [&](std::string_view piece) { choices.emplace_back(piece); });
  choices.erase(choices.begin());
  return choices;
}

}  // namespace hpcbatch
