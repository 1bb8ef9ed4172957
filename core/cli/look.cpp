// `show`, `explain`: one in full, and why it is as it is.
#include "cli/describe.hpp"
#include "cli/engine_start.hpp"
#include "cli/exit.hpp"
#include "cli/named.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "cli/values.hpp"

#include <boost/json/array.hpp>

#include <algorithm>

namespace hpcbatch {
namespace {

namespace json = boost::json;

// Of what a task printed last, an explanation quotes no more.
constexpr const char* kQuoted = "600";
constexpr std::size_t kLinesQuoted = 3;

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
std::string last_words(EngineClient& client, const std::string& task, const std::string& stream) {
  const Answer answer = client.http().request(
      "GET", "/v1/tasks/" + task + "/log?stream=" + stream + "&tail=" + kQuoted, {},
      EngineClient::kAnswerTime);
  if (answer.outcome != Exchange::Answered || answer.status != 200) return "";
  std::string text = text_at(client.object_of(answer), "text");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return last_lines(text, kLinesQuoted);
}

void print_last_words(EngineClient& client, const std::string& task) {
  for (const char* stream : {"stderr", "stdout"}) {
    const std::string words = last_words(client, task, stream);
    if (words.empty()) continue;
    print("  " + task + " last printed:\n");
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = std::min(words.find('\n', at), words.size());
      print("    " + one_line(words.substr(at, end - at)) + "\n");
      at = end + 1;
    }
    return;
  }
}

}  // namespace

int show_task(const ShowCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  const std::string id = resolve_id(client, command.id);
  Answer answer = client.http().request("GET", "/v1/tasks/" + id, {}, EngineClient::kAnswerTime);
  // A number alone may be a whole array, which is no task.
  if (answer.status / 100 == 4 && id.find('.') == std::string::npos)
    answer = client.http().request("GET", "/v1/arrays/" + id, {}, EngineClient::kAnswerTime);
  json::object shown = client.object_of(answer);
  if (!command.json) shown.erase("trouble");
  if (command.json)
    print_json(shown);
  else
    print(describe(shown));
  return kExitDone;
}

int explain_task(const ExplainCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  const std::string id = resolve_id(client, command.id);
  const json::object why = client.get("/v1/tasks/" + id + "/explain");
  if (command.json) {
    print_json(why);
    return kExitDone;
  }
  print(one_line(text_at(why, "id")) + " is " + one_line(text_at(why, "state")) + ": " +
        one_line(text_at(why, "text")) + "\n");
  if (const json::array* details = array_at(why, "details")) {
    for (const json::value& detail : *details)
      print("  " + one_line(value_on_a_line("detail", detail)) + "\n");
  }
  // What a task says itself tells most.
  const json::array* failures = array_at(why, "failures");
  if (failures != nullptr && !failures->empty() && failures->front().is_object())
    print_last_words(client, text_at(failures->front().get_object(), "first"));
  else if (text_at(why, "state") == "failed")
    print_last_words(client, text_at(why, "id"));
  return kExitDone;
}

}  // namespace hpcbatch
