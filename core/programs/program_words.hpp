// Which words of a command are read as a program, by a shell or another interpreter.  A name that is
// put into one is run: a file called `$(rm x)` would be.  Every door that puts texts into commands
// asks here, whatever its places look like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// What stands in a word for a place that a text is put into later.
/// The text goes in as it is.
inline constexpr char kPlainPlace = '\x1a';
/// In quotes for a shell, because its author wrote `{name:q}`.
inline constexpr char kQuotedPlace = '\x1b';
/// As it is where a word only looks like a program, because its author wrote `{name:raw}`.
inline constexpr char kRawPlace = '\x1c';

/// What an author has written, with nothing in it that would be taken for a place.
std::string without_marks(std::string_view text);

/// Takes `:q` or `:raw` from the end of what stands in braces; which of the three it is then.
char take_form(std::string_view& inner);

/// In one pass, each `{name}`, with its form, that `value` has something for; the rest stays.
std::string fill_braces(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name, char form)>& value);

/// A place that must not stand where it does.
struct MisplacedText {
  enum class Why : std::uint8_t {
    InProgram,  ///< a shell or an interpreter reads that word as a program
    Quoted,     ///< quotes for a shell do not help there: within others, or no such shell reads it
    Suspect,    ///< nobody knows the program, and the word looks like code
  };
  Why why{Why::InProgram};
  std::size_t word{0};  ///< of the command
  bool is_of_a_shell{true};
};

/// The first there is.  Places in `command` are those three characters.  A list of programs is never
/// complete: of those that it lacks, a place is refused that is a part of a word that looks like
/// code (separators or substitutions of a shell beside blanks; what follows an option such as -c,
/// -e or --eval).  A whole word, or a part of one as in --in={file} or out/{name}.txt, never is.
/// Linear in time.
std::optional<MisplacedText> misplaced_text(const std::vector<std::string>& command);

/// Whether an interpreter that is no shell reads that word as its program: braces in it are its own.
bool is_code_of_no_shell(const std::vector<std::string>& command, std::size_t word);

/// A sentence without its end: why, and what to write.  `place` is as it was written, such as
/// {file}; `quoted` and `raw` are how its other forms are written.
std::string why_misplaced(const MisplacedText& text, std::string_view place,
                          std::string_view quoted, std::string_view raw);

}  // namespace hpcbatch
