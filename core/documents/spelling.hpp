// Guesses what a person meant by a word that we do not know.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// The word of `known` that is nearest to `word`, if it is near enough to have been meant, or the
/// shortest that begins with it, or the only one of which it is a part (`oom` of `oom_task`); else
/// empty.
std::string nearest_spelling(std::string_view word, const std::vector<std::string>& known);

/// `; did you mean 'walltime'?`, or `; known are a, b, c`, or nothing where none is known.
std::string spelling_hint(std::string_view word, const std::vector<std::string>& known);

/// What other programs call a word of ours, with blanks between.
struct NamedElsewhere {
  std::string_view ours, theirs;
};
/// Our word for one of other programs, the first that `may_be` admits; else empty.
std::string meant_elsewhere(
    std::span<const NamedElsewhere> names, std::string_view word,
    const std::function<bool(std::string_view)>& may_be = [](std::string_view) { return true; });

}  // namespace hpcbatch
