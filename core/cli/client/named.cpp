#include "cli/client/named.hpp"

#include "cli/parse/spelled.hpp"
#include "cli/process/exit.hpp"
#include "cli/process/surroundings.hpp"
#include "cli/show/values.hpp"
#include "model/index_set.hpp"

#include <boost/json/array.hpp>

#include <map>
#include <set>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::string_view kLast = "last";

std::vector<std::string> last_ones(EngineClient& client, const std::string& task) {
  const json::object answer = client.get("/v1/arrays?limit=1&client=" + encode_part(client_name()));
  const json::array* found = array_at(answer, "arrays");
  if (found == nullptr || found->empty() || !found->front().is_object()) {
    throw CommandError(kExitUsage,
                       "you have submitted nothing that is known here; `hpcbatch list` shows what "
                       "others have");
  }
  const json::object& newest = found->front().get_object();
  if (task.empty() && newest.contains("submit")) return submissions_in(text_at(newest, "submit"));
  return {text_at(newest, "id") + task};
}

/// Each task once, however often it is named: what is named whole is not named in part.
std::vector<std::string> each_once(const std::vector<std::string>& ids) {
  std::set<std::string> whole;
  for (const std::string& id : ids) {
    if (id.find('.') == std::string::npos) whole.insert(id);
  }
  std::vector<std::string> once;
  std::map<std::string, IndexSet> parts;
  std::set<std::string> told;
  for (const std::string& id : ids) {
    const std::size_t dot = id.find('.');
    if (dot == std::string::npos) {
      if (told.insert(id).second) once.push_back(id);
      continue;
    }
    const std::string array = id.substr(0, dot);
    auto indices = parse_index_set(id.substr(dot + 1));
    if (whole.contains(array) || !indices) continue;
    indices->remove(parts[array]);
    if (indices->empty()) continue;
    parts[array].add(*indices);
    once.push_back(array + "." + to_string(*indices));
  }
  return once;
}

}  // namespace

std::vector<std::string> resolve_ids(EngineClient& client, const std::vector<std::string>& words,
                                     const std::string& name) {
  std::vector<std::string> ids;
  ids.reserve(words.size());
  for (const std::string& word : words) {
    const std::vector<std::string> meant = word.starts_with(kLast)
                                               ? last_ones(client, word.substr(kLast.size()))
                                               : submissions_in(word);
    ids.insert(ids.end(), meant.begin(), meant.end());
  }
  if (name.empty()) return each_once(ids);
  const std::size_t of_words = ids.size();
  std::string before;
  do {
    const json::object answer =
        client.get("/v1/arrays?limit=1000&client=" + encode_part(client_name()) +
                   "&name=" + encode_part(name) + (before.empty() ? "" : "&before=" + before));
    before = text_at(answer, "next");
    const json::array* found = array_at(answer, "arrays");
    if (found == nullptr) break;
    for (const json::value& one : *found) {
      if (one.is_object()) ids.push_back(text_at(one.get_object(), "id"));
    }
  } while (!before.empty());
  if (ids.size() == of_words) {
    throw CommandError(kExitUsage, "nothing that you have submitted is called '" + name +
                                       "'; `hpcbatch list` shows the names");
  }
  return each_once(ids);
}

void resolve_waits(EngineClient& client, json::array& tasks, const std::function<void()>& connect) {
  for (json::value& task : tasks) {
    for (const char* key : {"after", "after_any", "after_each"}) {
      json::value* waits = task.get_object().if_contains(key);
      if (waits == nullptr || !waits->is_array()) continue;
      json::array resolved;
      for (const json::value& word : waits->get_array()) {
        if (!word.is_string()) {
          resolved.push_back(word);
          continue;
        }
        const std::string text(word.get_string());
        if (text.starts_with(kLast)) connect();
        for (const std::string& id : one_by_one(resolve_ids(client, {text}, "")))
          resolved.emplace_back(id);
      }
      *waits = std::move(resolved);
    }
  }
}

std::vector<std::string> one_by_one(const std::vector<std::string>& ids) {
  std::vector<std::string> tasks;
  for (const std::string& id : ids) {
    const std::size_t dot = id.find('.');
    const auto indices =
        dot == std::string::npos ? std::nullopt : parse_index_set(id.substr(dot + 1));
    if (!indices) {
      tasks.push_back(id);
      continue;
    }
    // Ranges come from the highest down.
    for (auto range = indices->ranges().rbegin(); range != indices->ranges().rend(); ++range) {
      for (std::uint64_t i = range->first; i <= range->last; ++i)
        tasks.push_back(id.substr(0, dot + 1) + std::to_string(i));
    }
  }
  return tasks;
}

}  // namespace hpcbatch
