// `sites`, `allocations`, `pilots`, `tools`: what there is to run on and to run.
#include "cli/client/engine_start.hpp"
#include "cli/client/gpu_trial.hpp"
#include "cli/process/exit.hpp"
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
using Kind = InventoryCommand::Kind;

/// A site's check runs commands there, some of which are slow.
constexpr std::chrono::minutes kCheckTime{5};

/// What the site could be configured as, to be copied.
void print_proposal(const json::object& answer) {
  if (const json::array* notes = array_at(answer, "notes"); notes != nullptr && !notes->empty()) {
    print("\n");
    for (const json::value& note : *notes) {
      if (note.is_string()) print("note: " + one_line(std::string(note.get_string())) + "\n");
    }
  }
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
  if (command.json) {
    print_json(answer);
    return kExitDone;
  }
  const json::array* files = array_at(answer, "removed");
  if (files == nullptr)
    throw CommandError(kExitNoEngine, "the engine's answer does not say what was removed");
  for (const json::value& file : *files) {
    if (command.dry_run && file.is_object())
      print(one_line(text_at(file.get_object(), "path")) + "\n");
  }
  print(fmt::format("{} {} files, {}; {} files, {}, are kept\n",
                    command.dry_run ? "would remove" : "removed", files->size(),
                    size_at(answer, "removed_bytes"), number_at(answer, "kept_files"),
                    size_at(answer, "kept_bytes")));
  return kExitDone;
}

int resume_site(EngineClient& client, const InventoryCommand& command, const std::string& target) {
  const json::object answer = client.post(target + "/resume", {});
  if (command.json) {
    print_json(answer);
    return kExitDone;
  }
  const auto shapes = static_cast<std::uint64_t>(number_at(answer, "shapes"));
  print(shapes == 0 ? command.name + " was not paused\n"
                    : fmt::format("{} is asked for pilots again ({} had a pause)\n", command.name,
                                  show_count(shapes, "shape")));
  return kExitDone;
}

}  // namespace

const char* word_of(Kind kind) {
  switch (kind) {
    case Kind::Sites:
      return "sites";
    case Kind::Allocations:
      return "allocations";
    case Kind::Pilots:
      return "pilots";
    case Kind::Tools:
      return "tools";
  }
  return "";
}

// NOLINTNEXTLINE(readability-function-size)
Table inventory_table(Kind kind, const json::array& things) {
  using Side = Table::Side;
  struct Shown {
    const char* key;
    Table::Column column;
  };
  std::vector<Shown> shown;
  switch (kind) {
    case Kind::Sites:
      shown = {{"name", {"SITE"}},
               {"state", {"STATE"}},
               {"scheduler", {"SCHEDULER"}},
               {"transport", {"TRANSPORT"}},
               {"queued", {"QUEUED", Side::Right}},
               {"running", {"RUNNING", Side::Right}},
               {"message", {"MESSAGE"}}};
      break;
    case Kind::Allocations:
      shown = {{"name", {"ALLOCATION"}},
               {"site", {"SITE"}},
               {"shape", {"SHAPE"}},
               {"state", {"STATE"}},
               {"batch_id", {"BATCH"}},
               {"nodes", {"NODES", Side::Right}},
               {"submitted_at", {"SUBMITTED"}},
               {"started_at", {"STARTED"}},
               {"ends_at", {"ENDS"}},
               {"message", {"MESSAGE"}}};
      break;
    case Kind::Pilots:
      shown = {{"name", {"PILOT"}},
               {"site", {"SITE"}},
               {"node", {"NODE"}},
               {"state", {"STATE"}},
               {"tasks", {"TASKS", Side::Right}},
               {"cpus", {"CPUS", Side::Right}},
               {"memory", {"MEMORY", Side::Right}},
               {"gpus", {"GPUS"}},
               {"ends_at", {"ENDS"}}};
      break;
    case Kind::Tools:
      shown = {{"name", {"TOOL"}},
               {"version", {"VERSION"}},
               {"interpreter", {"INTERPRETER"}},
               {"description", {"DESCRIPTION"}},
               {"error", {"ERROR"}}};
      break;
  }
  std::vector<Table::Column> columns;
  columns.reserve(shown.size());
  for (const Shown& one : shown) columns.push_back(one.column);
  Table table(std::move(columns));
  for (const json::value& thing : things) {
    if (!thing.is_object()) continue;
    std::vector<std::string> row;
    for (const Shown& one : shown) {
      const json::value* value = thing.get_object().if_contains(one.key);
      row.push_back(value == nullptr ? "" : value_in_a_table(one.key, *value));
    }
    table.add(std::move(row));
  }
  return table;
}

Table check_table(const json::array& checks) {
  Table table(
      {{"", Table::Side::Left}, {"CHECK", Table::Side::Left}, {"RESULT", Table::Side::Left}});
  for (const json::value& check : checks) {
    if (!check.is_object()) continue;
    const json::object& one = check.get_object();
    table.add({flag_at(one, "ok") ? "ok" : "BAD", text_at(one, "check"), text_at(one, "text")});
  }
  return table;
}

namespace {

/// What its runs took, where there have been some.
void add_what_it_took(EngineClient& client, json::object& tool) {
  const Answer answer =
      client.http().request("GET", "/v1/report?by=kind&since=0", {}, EngineClient::kAnswerTime);
  // An older engine knows none.
  if (answer.status == 404) return;
  const json::object report = client.object_of(answer);
  const json::array* rows = array_at(report, "rows");
  if (rows == nullptr) return;
  for (const json::value& row : *rows) {
    if (!row.is_object() || text_at(row.get_object(), "key") != text_at(tool, "name")) continue;
    for (const char* key : {"runs", "failed", "took"}) {
      if (const json::value* value = row.get_object().if_contains(key)) tool[key] = *value;
    }
  }
}

}  // namespace

int show_inventory(const InventoryCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  // What an engine would know is asked for before there is work for one.
  using Act = InventoryCommand::Act;
  if (command.kind == InventoryCommand::Kind::Tools || command.act == Act::Check ||
      command.act == Act::Clean || command.act == Act::Resume) {
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  }
  const std::string word = word_of(command.kind);
  const std::string one = "/v1/" + word + "/" + encode_part(command.name);
  if (command.act == Act::Check) return check_one(client, session, command, one);
  if (command.act == Act::Clean) return clean_site(client, command, one);
  if (command.act == Act::Resume) return resume_site(client, command, one);
  if (command.act == Act::Show) {
    json::object thing = client.get(one);
    if (command.kind == InventoryCommand::Kind::Tools) add_what_it_took(client, thing);
    if (command.json)
      print_json(thing);
    else
      print(describe(thing, columns_of_output()));
    return kExitDone;
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
    print(inventory_table(command.kind, *things).text(columns_of_output(), Table::Last::Wrapped));
  }
  return kExitDone;
}

}  // namespace hpcbatch
