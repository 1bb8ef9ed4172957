// `show`: tasks or submissions in full.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::object shown(EngineClient& client, const std::string& id) {
  Answer answer = client.http().request("GET", "/v1/tasks/" + id, {}, EngineClient::kAnswerTime);
  // A number alone may be a whole array, which is no task.
  if (answer.status / 100 == 4 && id.find('.') == std::string::npos)
    answer = client.http().request("GET", "/v1/arrays/" + id, {}, EngineClient::kAnswerTime);
  return client.object_of(answer);
}

}  // namespace

int perform(const ShowCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  bool is_first = true;
  for (const std::string& id : one_by_one(resolve_ids(client, command.ids, command.name))) {
    json::object one = shown(client, id);
    if (command.json) {
      print_json(one);
      continue;
    }
    one.erase("trouble");
    if (!std::exchange(is_first, false)) print("\n");
    print(describe(one, columns_of_output()));
  }
  return kExitDone;
}

// `explain`: why tasks wait, or how they failed.

namespace {

// Of what a task printed last, an explanation quotes no more.
constexpr const char* kQuoted = "600";
constexpr std::size_t kLinesQuoted = 3;
constexpr std::size_t kWaysQuoted = 3;  // of those in which its tasks failed, the commonest

std::string last_lines(const std::string& text, std::size_t lines) {
  std::size_t begin = text.size();
  for (; lines > 0 && begin > 0; --lines) {
    const std::size_t end_before = text.rfind('\n', begin - 1);
    if (end_before == std::string::npos) return text;
    begin = end_before;
  }
  return text.empty() ? text : text.substr(begin + 1);
}

/// What a task wrote last to one of its streams; nothing where that cannot be told.
std::string output_tail(EngineClient& client, const std::string& task, const std::string& stream) {
  const Answer answer = client.http().request(
      "GET", "/v1/tasks/" + task + "/log?stream=" + stream + "&tail=" + kQuoted, {},
      EngineClient::kAnswerTime);
  if (answer.outcome != Exchange::Answered || answer.status != 200) return "";
  std::string text = text_at(client.object_of(answer), "text");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return last_lines(text, kLinesQuoted);
}

void print_output_tail(EngineClient& client, const std::string& task) {
  for (const char* stream : {"stderr", "stdout"}) {
    const std::string words = output_tail(client, task, stream);
    if (words.empty()) continue;
    print("  " + task + " last printed:\n");
    for (const std::string_view line : lines_of(words)) print("    " + one_line(line) + "\n");
    return;
  }
}

void print_explanation(EngineClient& client, const json::object& why) {
  const auto tell = [](const std::string& line) {
    print(lines_for(STDOUT_FILENO, line, 4) + "\n");
  };
  const std::string item = text_at(why, "item");
  tell(one_line(text_at(why, "id") + (item.empty() ? "" : " (item " + item + ")")) + " is " +
       one_line(text_at(why, "state")) + ": " + one_line(text_at(why, "text")));
  for (const std::string& detail : texts_at(why, "details")) tell("  " + one_line(detail));
  // What a task says itself tells most.
  const Objects failures = objects_at(why, "failures");
  if (failures.empty() && text_at(why, "state") == "failed")
    print_output_tail(client, text_at(why, "id"));
  for (std::size_t i = 0; i < std::min(failures.size(), kWaysQuoted); ++i)
    print_output_tail(client, text_at(failures[i], "first"));
}

/// Of many explanations those that people read: of what has not ended well, failures first.
constexpr std::size_t kExplained = 20;

class Explanations {
 public:
  /// A whole submission, or one task that was named.
  void add(json::object why, bool is_task) {
    ++(is_task ? named_tasks_ : submissions_);
    const json::object* counts = object_at(why, "counts");
    const std::string state = text_at(why, "state");
    if (counts == nullptr) {
      count(state, 1);
    } else {
      for (const auto& [of, tasks] : *counts) count(of, number_at(*counts, of));
    }
    if (state == "done") return;
    ++others_;
    std::vector<json::object>& those = state == "failed" ? failed_ : waiting_;
    if (those.size() < kExplained) those.push_back(std::move(why));
  }
  void print_to_people(EngineClient& client) {
    const std::string submissions =
        std::to_string(submissions_) + (submissions_ == 1 ? " submission" : " submissions");
    const std::string of =
        submissions_ == 0 ? std::to_string(named_tasks_)
        : named_tasks_ == 0
            ? submissions + " with " + whole(tasks_)
            : submissions + " and " + std::to_string(named_tasks_) + " more, " + whole(tasks_);
    print("of " + of + " tasks" + text_ + "\n");
    failed_.insert(failed_.end(), waiting_.begin(), waiting_.end());
    failed_.resize(std::min(failed_.size(), kExplained));
    for (const json::object& why : failed_) print_explanation(client, why);
    if (others_ > failed_.size())
      print("and " + std::to_string(others_ - failed_.size()) + " more have not ended well\n");
  }

 private:
  void count(std::string_view state, double tasks) {
    tasks_ += tasks;
    counts_[std::string(state)] += tasks;
    text_.clear();
    for (const auto& [of, number] : counts_) {
      if (number > 0) text_ += (text_.empty() ? ": " : ", ") + whole(number) + " " + of;
    }
  }

  std::size_t submissions_{0}, named_tasks_{0}, others_{0};
  double tasks_{0};
  std::map<std::string, double> counts_;
  std::string text_;
  std::vector<json::object> failed_, waiting_;
};

}  // namespace

int perform(const ExplainCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  const std::vector<std::string> ids = one_by_one(resolve_ids(client, command.ids, command.name));
  Explanations all;
  for (const std::string& id : ids) {
    json::object why = client.get("/v1/tasks/" + id + "/explain");
    if (command.json)
      print_json(why);
    else if (ids.size() == 1)
      print_explanation(client, why);
    else
      all.add(std::move(why), id.find('.') != std::string::npos);
  }
  if (!command.json && ids.size() > 1) all.print_to_people(client);
  return kExitDone;
}

}  // namespace hpcbatch
