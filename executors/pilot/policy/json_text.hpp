// The little of JSON that the descriptions of images need: texts, lists and objects.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

struct JsonText {
  std::string text;  // of a text; a number or a word as it is written
  std::vector<JsonText> list;
  std::map<std::string, JsonText> fields;

  /// Empty where there is no such field.
  const JsonText& at(const std::string& name) const;
};

/// Nothing where it is no JSON, or goes deeper than any such description.
std::optional<JsonText> read_json(std::string_view text);

}  // namespace hpcbatch::pilot
