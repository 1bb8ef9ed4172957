// JSON of requests: read as a whole or piece by piece a submit is the same, and has the same content.
#include "api/read/read_request.hpp"
#include "api/read/read_task.hpp"
#include "documents/texts.hpp"
#include "fuzz/harness.hpp"

#include <boost/json/serialize.hpp>

#include <optional>

namespace hpcbatch::fuzz {
namespace {

struct Outcome {
  std::string refusal;  ///< empty: none
  std::string client, key, directory;
  std::vector<std::vector<std::string>> commands;
  std::uint64_t content{0};
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

template <class Read>
Outcome outcome_of(Read read) {
  try {
    const SubmitWithContent submit = read();
    Outcome outcome{"", submit.request.client, submit.request.key, submit.request.directory,
                    {}, submit.content};
    for (const TaskRequest& task : submit.request.tasks) {
      outcome.commands.push_back(task.command);
      example_item(task);
    }
    return outcome;
  } catch (const BadRequest& refused) {
    check(*refused.what() != '\0', "a refusal is a sentence");
    return {refused.what(), "", "", "", {}, 0};
  }
}

Outcome outcome_as_a_whole(const std::string& body) {
  return outcome_of([&] {
    const boost::json::value value = parse_body_of_submits(body);
    return SubmitWithContent{read_submit(value), content_of(value)};
  });
}

void read_other(const std::string& body) {
  try {
    const boost::json::value value = parse_body(body);
    if (!value.is_object()) return;
    if (value.get_object().contains("ids")) read_selections(value);
    read_needs_change(value);
  } catch (const BadRequest&) {
  }
}

}  // namespace
}  // namespace hpcbatch::fuzz

HPCBATCH_HARNESS(submit, bytes) {
  const std::string body(bytes);
  const Outcome outcome = outcome_as_a_whole(body);
  check(outcome == outcome_of([&] { return read_submit_body(body); }),
        "a submit is the same read piece by piece");
  check(outcome.commands.size() <= body.size(), "no more tasks than bytes");
  if (outcome.refusal.empty()) {
    const std::string again = boost::json::serialize(parse_body_of_submits(body));
    check(outcome_as_a_whole(again) == outcome, "a submit is the same written again");
  }
  read_other(body);
}
