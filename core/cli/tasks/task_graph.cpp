#include "cli/tasks/task_graph.hpp"

#include "cli/parse/spelled.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "documents/spelling.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::array kWaits{"after", "after_any", "after_each"};

[[noreturn]] void refuse(const std::string& file, const std::string& sentence) {
  throw CommandError(kExitUsage, file + ": " + sentence);
}

/// A word that stands for another task of the file, taken apart.
struct Reference {
  std::size_t task{0};   ///< its place in the file
  std::string of_index;  ///< `.7`, or nothing
};

class Graph {
 public:
  Graph(json::array& tasks, const std::string& file) : tasks_(tasks), file_(file) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const std::string name = text_at(at(i), "name");
      if (!name.empty()) named_[name].push_back(i);
    }
    waits_for_.resize(tasks_.size());
  }

  void order();

 private:
  json::object& at(std::size_t task) const { return tasks_[task].get_object(); }
  std::string called(std::size_t task) const {
    const std::string name = text_at(at(task), "name");
    return "task " + std::to_string(task + 1) + (name.empty() ? "" : " (" + name + ")");
  }
  template <class Do>
  void each_word(std::size_t task, Do look) const;
  std::optional<Reference> reference(std::size_t task, const std::string& word) const;
  std::optional<Reference> by_place(std::size_t task, const std::string& word) const;
  std::optional<Reference> by_name(std::size_t task, const std::string& word) const;
  std::vector<std::size_t> sorted() const;

  json::array& tasks_;
  const std::string& file_;
  std::map<std::string, std::vector<std::size_t>> named_;
  std::vector<std::set<std::size_t>> waits_for_;
};

template <class Do>
void Graph::each_word(std::size_t task, Do look) const {
  for (const char* key : kWaits) {
    json::value* value = at(task).if_contains(key);
    if (value == nullptr) continue;
    if (value->is_string()) *value = json::array{*value};
    if (!value->is_array()) continue;
    for (json::value& word : value->get_array()) {
      if (word.is_string()) look(word.get_string());
    }
  }
}

std::optional<Reference> Graph::by_place(std::size_t task, const std::string& word) const {
  std::size_t place = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + 1, end, place);
  if (error != std::errc{} || (stop != end && *stop != '.') || place == 0 || place > tasks_.size())
    refuse(file_, called(task) + " waits for '" + word + "': the file has no such task");
  return Reference{place - 1, std::string(stop, end)};
}

std::optional<Reference> Graph::by_name(std::size_t task, const std::string& word) const {
  // A name may have dots itself.
  auto named = named_.find(word);
  std::string of_index;
  if (const std::size_t dot = word.rfind('.'); named == named_.end() && dot != std::string::npos) {
    named = named_.find(word.substr(0, dot));
    of_index = word.substr(dot);
  }
  if (named == named_.end()) return std::nullopt;
  if (named->second.size() > 1) {
    refuse(file_, called(task) + " waits for '" + word + "', and " +
                      std::to_string(named->second.size()) +
                      " tasks are called so; write #N for the Nth task");
  }
  return Reference{named->second.front(), of_index};
}

/// Nothing where it is the id of what was submitted before.
std::optional<Reference> Graph::reference(std::size_t task, const std::string& word) const {
  if (word.starts_with('#')) return by_place(task, word);
  if (auto found = by_name(task, word)) return found;
  try {
    checked_id(word);
    return std::nullopt;
  } catch (const std::invalid_argument&) {
    std::vector<std::string> names;
    for (const auto& [name, tasks] : named_) names.push_back(name);
    const std::string near = nearest_spelling(word, names);
    refuse(file_, called(task) + " waits for '" + word + "', which is no id and no task's name" +
                      (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
}

std::vector<std::size_t> Graph::sorted() const {
  std::vector<std::set<std::size_t>> waiting = waits_for_;
  std::vector<std::vector<std::size_t>> followers(tasks_.size());
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].empty()) ready.insert(i);
    for (const std::size_t other : waiting[i]) followers[other].push_back(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t follower : followers[next]) {
      waiting[follower].erase(next);
      if (waiting[follower].empty()) ready.insert(follower);
    }
  }
  if (order.size() == tasks_.size()) return order;
  // Whoever still waits leads into the circle.
  std::size_t at = static_cast<std::size_t>(
      std::find_if(waiting.begin(), waiting.end(), [](const auto& w) { return !w.empty(); }) -
      waiting.begin());
  std::vector<std::size_t> way;
  for (; std::find(way.begin(), way.end(), at) == way.end(); at = *waiting[at].begin())
    way.push_back(at);
  if (waiting[at].contains(at)) refuse(file_, called(at) + " waits for itself: it can never start");
  std::string circle = called(at);
  for (auto step = std::find(way.begin(), way.end(), at) + 1; step != way.end(); ++step)
    circle += ", which waits for " + called(*step);
  refuse(file_, circle + ", which waits for the first: none of them can ever start");
}

void Graph::order() {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    each_word(i, [&](const json::string& word) {
      if (const auto found = reference(i, std::string(word))) waits_for_[i].insert(found->task);
    });
  }
  const std::vector<std::size_t> order = sorted();
  std::vector<std::size_t> place_of(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) place_of[order[place]] = place;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    each_word(i, [&](json::string& word) {
      if (const auto found = reference(i, std::string(word)))
        word = "#" + std::to_string(place_of[found->task] + 1) + found->of_index;
    });
  }
  json::array ordered;
  ordered.reserve(tasks_.size());
  for (const std::size_t task : order) ordered.push_back(std::move(tasks_[task]));
  tasks_ = std::move(ordered);
}

}  // namespace

void order_tasks(json::array& tasks, const std::string& file) {
  Graph(tasks, file).order();
}

}  // namespace hpcbatch
