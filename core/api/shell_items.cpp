#include "api/shell_items.hpp"

#include "model/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace hpcbatch {
namespace {

bool is_shell(std::string_view word) {
  static constexpr std::array<std::string_view, 7> kShells{"sh",  "bash", "dash", "zsh",
                                                           "ksh", "ash",  "fish"};
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

using Word = std::vector<std::string>::const_iterator;

/// `-c`, also among other letters, as `-euc`, of the options that come before all else.
Word program_option(Word at, Word end) {
  for (; at != end && at->size() > 1 && (at->front() == '-' || at->front() == '+'); ++at) {
    if (at->starts_with("--")) continue;
    if (at->find('c') != std::string::npos) return at;
    // Its value is a word of its own, as in `-o pipefail`.
    if (at->ends_with('o') && at + 1 != end) ++at;
  }
  return end;
}

}  // namespace

void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what) {
  const auto shell = std::find_if(command.begin(), command.end(), is_shell);
  if (shell == command.end()) return;
  const Word option = program_option(shell + 1, command.end());
  if (option == command.end() || option + 1 == command.end()) return;
  const std::string_view place = first_item_place(*(option + 1), item);
  if (place.empty()) return;
  throw BadRequest(
      fmt::format("{0}: '{1}' stands in the program of a shell, which would run what an item "
                  "holds; hand it over as an argument, {2} {3} '... \"$1\"' {2} {1}, or write "
                  "\"$HPCBATCH_ITEM\" there",
                  what, place, *shell, *option));
}

}  // namespace hpcbatch
