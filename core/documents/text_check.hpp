// Which bytes a text may hold, and what is done with the others.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

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

}  // namespace hpcbatch
