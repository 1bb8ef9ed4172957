// The fields of a JSON object as its author wrote them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// Names and values: texts without their quotation marks, `null` as an empty text, numbers and all
/// else letter by letter.  Nothing where the line is no JSON object.
std::optional<std::vector<std::pair<std::string, std::string>>> json_fields(std::string_view line);

/// The line with the numbers of those fields that are texts by their name in quotation marks, so
/// that they stay the letters of the author: `{"items": [0.10], "cpus": 2}` has "0.10" and 2.
std::string with_numbers_as_texts(std::string_view line,
                                  const std::function<bool(std::string_view name)>& is_text);

}  // namespace hpcbatch
