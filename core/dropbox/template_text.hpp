// `<<name>>` in a template: AMP's way to write the script of a job.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace hpcbatch {

struct TemplateValue {
  std::string text;
  /// Chosen by us or by the configuration.  What a client sends is inserted only where no shell
  /// could read more into it than a word.
  bool trusted{false};
};

/// One pass: a value is inserted as it is and not looked at again.  Throws std::invalid_argument
/// for a name without a value (as it stands it would be a here-document), and for a client's value
/// that is not safe to insert.
std::string render_template(std::string_view text,
                            const std::map<std::string, TemplateValue>& values);

/// Letters, digits, `_./:,=+@%-` and non-ASCII letters; a `-` first only in a number.
bool is_safe_in_shell(std::string_view value);

}  // namespace hpcbatch
