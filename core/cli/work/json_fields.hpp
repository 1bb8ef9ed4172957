// The fields of a JSON object as its author wrote them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// Names and values: texts without their quotation marks, `null` as an empty text, numbers and all
/// else letter by letter.  Nothing where the line is no JSON object.
std::optional<std::vector<std::pair<std::string, std::string>>> json_fields(std::string_view line);

}  // namespace hpcbatch
