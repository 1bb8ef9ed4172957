// `sites`, `allocations`, `pilots`, `tools`: what there is to run on and to run.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <boost/json/array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// A site's check runs commands there, some of which are slow.
constexpr std::chrono::minutes kCheckTime{5};

/// What the site could be configured as, to be copied.
void print_proposal(const json::object& answer) {
  const std::vector<std::string> notes = texts_at(answer, "notes");
  if (!notes.empty()) print("\n");
  for (const std::string& note : notes) print("note: " + one_line(note) + "\n");
  const json::value* proposal = answer.if_contains("proposal");
  if (proposal == nullptr || !proposal->is_string()) return;
  print("\nproposed entry:\n" + show_lines(proposal->get_string()));
}

json::object gpus_of(EngineClient& client, const Session& session, const InventoryCommand& command,
                     const std::string& target) {
  StatusLine status;
  const auto time = std::chrono::milliseconds(std::llround(command.gpus_within * 1000));
  json::array checks = try_gpus(client, session, client.get(target), time, status);
  const bool is_good = std::all_of(checks.begin(), checks.end(), [](const json::value& check) {
    return flag_at(check.as_object(), "ok");
  });
  return {{"ok", is_good}, {"checks", std::move(checks)}};
}

int check_one(EngineClient& client, const Session& session, const InventoryCommand& command,
              const std::string& target) {
  const json::object answer = command.gpus ? gpus_of(client, session, command, target)
                                           : client.post(target + "/check", {}, kCheckTime);
  const bool is_good = flag_at(answer, "ok");
  if (command.json) {
    print_json(answer);
  } else if (const json::array* checks = array_at(answer, "checks");
             checks != nullptr && !checks->empty()) {
    print(check_table(*checks).text(columns_of_output(), Table::Last::Wrapped));
    print_proposal(answer);
  } else {
    print(command.name + (is_good ? " is good" : " is bad") + "\n");
  }
  return is_good ? kExitDone : kExitTaskFailed;
}

int clean_site(EngineClient& client, const InventoryCommand& command, const std::string& target) {
  const json::object answer =
      client.post(target + "/clean", {{"dry_run", command.dry_run}}, kCheckTime);
  if (!command.json && array_at(answer, "removed") == nullptr)
    throw CommandError(kExitNoEngine, "the engine's answer does not say what was removed");
  const Objects files = objects_at(answer, "removed");
  std::string text;
  for (const json::object& file : files)
    if (command.dry_run) text += one_line(text_at(file, "path")) + "\n";
  return show_answer(
      command.json, answer,
      text + fmt::format("{} {} files, {}; {} files, {}, are kept\n",
                         command.dry_run ? "would remove" : "removed", files.size(),
                         size_at(answer, "removed_bytes"), number_at(answer, "kept_files"),
                         size_at(answer, "kept_bytes")));
}

int resume_site(EngineClient& client, const InventoryCommand& command, const std::string& target) {
  const json::object answer = client.post(target + "/resume", {});
  const auto shapes = static_cast<std::uint64_t>(number_at(answer, "shapes"));
  return show_answer(command.json, answer,
                     shapes == 0 ? command.name + " was not paused\n"
                                 : fmt::format("{} is asked for pilots again ({} had a pause)\n",
                                               command.name, show_count(shapes, "shape")));
}

/// What its runs took, where there have been some.
void add_what_it_took(EngineClient& client, json::object& tool) {
  const Answer answer =
      client.http().request("GET", "/v1/report?by=kind&since=0", {}, EngineClient::kAnswerTime);
  // An older engine knows none.
  if (answer.status == 404) return;
  const json::object report = client.object_of(answer);
  for (const json::object& row : objects_at(report, "rows")) {
    if (text_at(row, "key") != text_at(tool, "name")) continue;
    for (const char* key : {"runs", "failed", "took"}) {
      if (const json::value* value = row.if_contains(key)) tool[key] = *value;
    }
  }
}

}  // namespace

int perform(const InventoryCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  // What an engine would know is asked for before there is work for one.
  using Act = InventoryCommand::Act;
  if (command.kind == InventoryCommand::Kind::Tools || command.act == Act::Check ||
      command.act == Act::Clean || command.act == Act::Resume) {
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  }
  const std::string& word = listing_of(command.kind).word;
  const std::string one = "/v1/" + word + "/" + encode_part(command.name);
  if (command.act == Act::Check) return check_one(client, session, command, one);
  if (command.act == Act::Clean) return clean_site(client, command, one);
  if (command.act == Act::Resume) return resume_site(client, command, one);
  if (command.act == Act::Show) {
    json::object thing = client.get(one);
    if (command.kind == InventoryCommand::Kind::Tools) add_what_it_took(client, thing);
    return show_answer(command.json, thing, describe(thing, columns_of_output()));
  }
  const json::object answer = client.get("/v1/" + word);
  const json::array* things = array_at(answer, word);
  if (things == nullptr)
    throw CommandError(kExitNoEngine, "the engine's answer holds no list of " + word);
  if (command.json) {
    for (const json::value& thing : *things) print_json(thing);
  } else if (things->empty()) {
    print("no " + word + "\n");
  } else {
    print(inventory_table(command.kind, objects_in(*things))
              .text(columns_of_output(), Table::Last::Wrapped));
  }
  return kExitDone;
}

}  // namespace hpcbatch
