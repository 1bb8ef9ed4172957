#include "api/read/shell_items.hpp"

#include "model/placeholders.hpp"
#include "programs/program_words.hpp"

#include <fmt/format.h>

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
  throw BadRequest(
      fmt::format("{}: {}; or write \"$HPCBATCH_ITEM\" there (items that are commands: "
                  "sh -c 'eval \"$1\"' sh {{}})",
                  what,
                  why_misplaced(*text, place, fmt::format("{{{}:q}}", inner),
                                fmt::format("{{{}:raw}}", inner))));
}

}  // namespace hpcbatch
