// Texts for and from people: words that we do not know, bytes that a text may hold, lines that
// fit the page.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// Guesses what a person meant by a word that we do not know.

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

// Which bytes a text may hold, and what is done with the others.

/// Where a text stops being valid UTF-8, and why; surrogates and overlong forms are invalid.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// The same text with U+FFFD for each byte that is invalid.
std::string valid_utf8(std::string text);

/// The first byte that a text for people cannot hold: control bytes other than tab and newline, and
/// DEL.
std::optional<std::size_t> find_control_byte(std::string_view text);

/// The same text with each invalid byte replaced by U+FFFD and each control byte (but tab and
/// newline) by a picture of it (U+2400...), so that any document and any terminal can hold it.
std::string make_printable(std::string_view text);

/// For messages, in one line: control bytes and invalid bytes as `\xNN`, line ends as `\n`, what
/// a terminal obeys, hides or turns round (U+0085, U+200B, U+202E...) as `\uNNNN`; cut after `most`
/// bytes.  The only place where text that others gave is made fit to be read by people.
std::string show_text(std::string_view text, std::size_t most = 80);

/// The same, whole, with its line ends and tabs.
std::string show_lines(std::string_view text);

// Lines that are no longer than there is room.

/// A code point as a terminal draws it.
struct Letter {
  std::size_t bytes{1};
  std::size_t columns{1};  ///< 0 of what combines with the letter before, 2 of wide ones
};
/// The first of a text that is not empty; an invalid byte and a control character have one column.
Letter first_letter(std::string_view text);

/// Columns of a terminal, not bytes.
std::size_t width_of(std::string_view text);

/// Breaks at blanks where a line would be longer than `width` letters; a longer word stays whole.  The
/// first line has `used` letters before it, the others begin with `indent` blanks.
std::string wrapped(std::string_view text, std::size_t width, std::size_t used, std::size_t indent);

}  // namespace hpcbatch
