// `<<name>>` in a template: AMP's way to write the script of a job.  `<<name:q>>` is the value in quotes
// for the shell, as one word whatever it holds; it stands in no other quotes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace hpcbatch {

struct TemplateValue {
  std::string text;
  /// Chosen by us, by the configuration or by our own user.  What another user sends is inserted
  /// only where no shell could read more into it than a word.
  bool trusted{false};
};

struct RenderedTemplate {
  std::string text;
  std::set<std::string> unknown;  ///< names without a value, which are left as they are
};

/// One pass: a value is inserted as it is and not looked at again.  Throws std::invalid_argument
/// for a value that is not trusted and not safe to insert.
RenderedTemplate render_template(std::string_view text,
                                 const std::map<std::string, TemplateValue>& values);

/// Letters, digits, `_./:,=+@%-` and non-ASCII letters; a `-` first only in a number.
bool is_safe_in_shell(std::string_view value);

}  // namespace hpcbatch
