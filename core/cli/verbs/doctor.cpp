// `doctor`: looks at this installation and says of each part whether it is good, and if not, what
// to do.
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/process/slow_note.hpp"
#include "cli/show/inventory_table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/installation.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/array.hpp>

#include <algorithm>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kSiteTime{2};

Check check_of_site(EngineClient& client, const std::string& name) {
  const json::object checked =
      client.post("/v1/sites/" + encode_part(name) + "/check", {}, kSiteTime);
  std::string bad;
  if (const json::array* parts = array_at(checked, "checks")) {
    for (const json::value& part : *parts) {
      if (!part.is_object() || flag_at(part.get_object(), "ok")) continue;
      bad += (bad.empty() ? "" : "; ") + text_at(part.get_object(), "check") + ": " +
             text_at(part.get_object(), "text");
    }
  }
  const bool is_good = flag_at(checked, "ok");
  return {"site " + name, is_good, is_good ? "can be used" : bad.empty() ? "cannot be used" : bad};
}

void add_sites(std::vector<Check>& checks, EngineClient& client) {
  const json::object answer = client.get("/v1/sites");
  const json::array* sites = array_at(answer, "sites");
  if (sites == nullptr) return;
  for (const json::value& site : *sites) {
    if (!site.is_object()) continue;
    const std::string name = text_at(site.get_object(), "name");
    // A check would wait behind it.
    const std::string hangs = text_at(site.get_object(), "waits_for");
    try {
      checks.push_back(hangs.empty() ? check_of_site(client, name)
                                     : Check{"site " + name, false, hangs});
    } catch (const CommandError& error) {
      checks.push_back({"site " + name, false, error.what()});
    }
  }
}

void check_engine(std::vector<Check>& checks, const Session& session) {
  EngineClient client = session.client();
  const Answer connected = connect_to_running(client, session.places, session.interrupt);
  if (connected.outcome == Exchange::NoEngine) {
    if (const auto text = engine_out_of_reach(session.places)) {
      checks.push_back({"engine", false, *text});
      return;
    }
    checks.push_back(check_file_size(0));
    if (engine_that_died(session.places.home)) {
      checks.push_back(check_death(session.places));
      return;
    }
    checks.push_back({"engine", true,
                      "none runs; `run` and `submit` start one. Sites are checked when one runs"});
    return;
  }
  try {
    client.leave_trouble_out();  // it has a line of its own
    const json::object engine =
        object_of(client.http().request("GET", "/v1/engine", {}, EngineClient::kAnswerTime));
    checks.push_back({"engine", true, "runs as process " + std::to_string(client.http().peer())});
    checks.push_back(check_loaded(client.http().peer()));
    checks.push_back(check_file_size(client.http().peer()));
    const bool has_trouble = text_at(engine, "state") == "trouble";
    checks.push_back(
        {"store", !has_trouble, has_trouble ? text_at(engine, "message") : "can be written"});
    add_sites(checks, client);
  } catch (const CommandError& error) {
    checks.push_back({"engine", false, error.what()});
  }
}

}  // namespace

int check_installation(const DoctorCommand& command, const Session& session) {
  const std::string program = own_program();
  std::vector<Check> checks;
  {
    const SlowNote note("the file system of " + session.places.home + " or of " +
                        session.places.socket);
    checks = {check_home(session.places), check_socket(session.places),
              check_file_system(session.places)};
  }
  {
    const SlowNote note("the check of the configuration " + session.places.configuration +
                        " and of the plugins that it names");
    checks.push_back(check_configuration(session.places));
  }
  {
    const SlowNote note("the file system of " + program);
    checks.push_back(check_plugins(program));
    checks.push_back(check_pilot(program));
  }
  check_engine(checks, session);

  json::array rows;
  for (const Check& check : checks) {
    rows.push_back({{"check", check.name}, {"ok", check.is_good}, {"text", check.text}});
  }
  if (command.json) {
    for (const json::value& row : rows) print_json(row);
  } else {
    print(check_table(rows).text(columns_of_output(), Table::Last::Wrapped));
  }
  const bool all_good =
      std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.is_good; });
  return all_good ? kExitDone : kExitTaskFailed;
}

}  // namespace hpcbatch
