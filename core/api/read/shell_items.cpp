#include "api/read/shell_items.hpp"

#include "model/placeholders.hpp"
#include "programs/program_words.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hpcbatch {

void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what) {
  std::vector<std::string> marked;
  marked.reserve(command.size());
  for (const std::string& word : command) marked.push_back(with_places_marked(word, item));
  const auto text = misplaced_text(marked);
  if (!text) return;
  const std::string_view place = first_item_place(command[text->word], item);
  const std::string_view inner = place.substr(1, place.find_first_of(":}") - 1);
  if (text->word == 0 && text->why == MisplacedText::Why::Suspect) {
    std::string line = command.front();
    line.replace(line.find(place), place.size(), fmt::format("{{{}:q}}", inner));
    throw BadRequest(fmt::format(
        "{}: the command is one word here, and no shell reads it; a line for a shell is: "
        "sh -c '{}'",
        what, line.find('\'') == std::string::npos ? line : "LINE, with {:q} for {}"));
  }
  throw BadRequest(
      fmt::format("{}: {}; or write \"$HPCBATCH_ITEM\" there (items that are commands: "
                  "sh -c 'eval \"$1\"' sh {{}})",
                  what,
                  why_misplaced(*text, place, fmt::format("{{{}:q}}", inner),
                                fmt::format("{{{}:raw}}", inner))));
}

}  // namespace hpcbatch
