#include "cli/show/task_states.hpp"

#include "cli/show/values.hpp"

#include <boost/json/array.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::size_t kTasksOnAPage = 100'000;

}  // namespace

std::optional<IndexSet> indices_of(const std::string& id, const std::string& submission) {
  const std::size_t dot = id.find('.');
  if (dot == std::string::npos || id.compare(0, dot, submission) != 0) return std::nullopt;
  return parse_index_set(id.substr(dot + 1));
}

IndexSet indices_where(const AskEngine& ask, const std::string& submission,
                       const std::string& question) {
  IndexSet all;
  const std::string target =
      "/v1/tasks?limit=" + std::to_string(kTasksOnAPage) + "&array=" + submission + "&" + question;
  std::string before;
  for (;;) {
    std::string page = target;
    if (!before.empty()) page.append("&before=").append(before);
    const json::object answer = ask(page);
    const json::array* tasks = array_at(answer, "tasks");
    if (tasks == nullptr) return all;
    for (const json::value& task : *tasks) {
      if (!task.is_object()) continue;
      if (const auto indices = indices_of(text_at(task.get_object(), "id"), submission))
        all.add(*indices);
    }
    if (tasks->size() < kTasksOnAPage || !tasks->back().is_object()) return all;
    before = text_at(tasks->back().get_object(), "id");
  }
}

}  // namespace hpcbatch
