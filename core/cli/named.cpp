#include "cli/named.hpp"

#include "cli/exit.hpp"
#include "cli/surroundings.hpp"
#include "cli/values.hpp"

#include <boost/json/array.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::string_view kLast = "last";

}  // namespace

std::string resolve_id(EngineClient& client, const std::string& word) {
  if (!word.starts_with(kLast)) return word;
  const json::object answer =
      client.get("/v1/arrays?limit=1&client=" + encode_part(client_name(own_environment())));
  const json::array* found = array_at(answer, "arrays");
  if (found == nullptr || found->empty() || !found->front().is_object()) {
    throw CommandError(kExitUsage,
                       "you have submitted nothing that is known here; `hpcbatch list` shows what "
                       "others have");
  }
  return text_at(found->front().get_object(), "id") + word.substr(kLast.size());
}

std::vector<std::string> resolve_ids(EngineClient& client, const std::vector<std::string>& words,
                                     const std::string& name) {
  std::vector<std::string> ids;
  ids.reserve(words.size());
  for (const std::string& word : words) ids.push_back(resolve_id(client, word));
  if (name.empty()) return ids;
  std::string before;
  do {
    const json::object answer =
        client.get("/v1/arrays?limit=1000&client=" + encode_part(client_name(own_environment())) +
                   "&name=" + encode_part(name) + (before.empty() ? "" : "&before=" + before));
    before = text_at(answer, "next");
    const json::array* found = array_at(answer, "arrays");
    if (found == nullptr) break;
    for (const json::value& one : *found) {
      if (one.is_object()) ids.push_back(text_at(one.get_object(), "id"));
    }
  } while (!before.empty());
  if (ids.size() == words.size()) {
    throw CommandError(kExitUsage, "nothing that you have submitted is called '" + name +
                                       "'; `hpcbatch list` shows the names");
  }
  return ids;
}

}  // namespace hpcbatch
