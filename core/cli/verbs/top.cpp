// `top`: the live view of engine, allocations, pilots and tasks; or one picture of it.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kEvery{1000};
constexpr int kSubmissionsShown = 50;

/// Everything shown, as one object with the engine's own keys.
json::object look(EngineClient& client) {
  json::object all;
  all["engine"] = client.get("/v1/engine");
  for (const char* what : {"sites", "allocations", "pilots"}) {
    const json::object answer = client.get(std::string("/v1/") + what);
    all[what] = answer.at(what);
  }
  all["arrays"] =
      client.get("/v1/arrays?per=submit&limit=" + std::to_string(kSubmissionsShown)).at("arrays");
  return all;
}

/// What is not 0, and what everybody looks for.
std::string counts(const json::object& engine, const char* key) {
  const json::object* counts = object_at(engine, key);
  if (counts == nullptr) return "";
  json::object told;
  for (const auto& [state, count] : *counts) {
    const bool is_usual = state != "held" && state != "unknown" && state != "cancelled";
    if (is_usual || number_at(*counts, state) > 0) told[state] = count;
  }
  return value_on_a_line(key, told);
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Where not all has room, what is asked for most comes first, and the last line says how much is
/// left out.
std::string fitted(std::string head, std::vector<std::string> sections,
                   std::optional<std::size_t> rows) {
  std::size_t lines = lines_in(head);
  for (const std::string& section : sections) lines += lines_in(section);
  const bool fits = !rows || lines <= *rows;
  if (!fits) std::reverse(sections.begin(), sections.end());
  for (const std::string& section : sections) head += section;
  if (fits) return head;
  std::size_t end = 0;
  for (std::size_t row = 0; row + 1 < *rows; ++row) end = head.find('\n', end) + 1;
  return head.substr(0, end) + std::to_string(lines + 1 - *rows) +
         " more lines; `hpcbatch top --once` prints all\n";
}

/// `rows`: of the terminal; nothing: as many as there are.
std::string picture(const json::object& all, const std::string& hint = "",
                    std::optional<std::size_t> rows = {}) {
  const json::object& engine = *object_at(all, "engine");
  std::string out = "engine " + text_at(engine, "state") + ", up " +
                    duration_at(engine, "uptime_s") + ", version " + text_at(engine, "version") +
                    hint + "\n";
  if (const std::string message = text_at(engine, "message"); !message.empty())
    out += one_line(message) + "\n";
  out = "hpcbatch " + out + "tasks   " + counts(engine, "tasks") + "\npilots  " +
        counts(engine, "pilots") + "\n";
  const std::optional<std::size_t> room = columns_of_output();
  std::vector<std::string> sections;
  const auto section = [&](const Table& table) {
    if (!table.empty()) sections.push_back("\n" + table.text(room));
  };
  using Shown = InventoryCommand::Kind;
  section(inventory_table(Shown::Sites, objects_at(all, "sites")));
  // Those that have ended are history and not the live view's.
  Objects allocations = objects_at(all, "allocations");
  std::erase_if(allocations,
                [](const json::object& one) { return text_at(one, "state") == "ended"; });
  section(inventory_table(Shown::Allocations, allocations));
  section(inventory_table(Shown::Pilots, objects_at(all, "pilots")));
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  section(submission_table(objects_at(all, "arrays"), now.count()));
  return fitted(std::move(out), std::move(sections), rows);
}

}  // namespace

int show_top(const TopCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  client.leave_trouble_out();  // it is on the picture
  if (command.json) {
    print_json(look(client));
    return kExitDone;
  }
  if (command.once || ::isatty(STDOUT_FILENO) == 0) {
    print(picture(look(client)));
    return kExitDone;
  }
  const std::string hint = "; q ends this";
  const auto rows = [] { return terminal_size(STDOUT_FILENO).value_or(TerminalSize{}).rows; };
  const std::string first =
      picture(look(client), hint, rows());  // an error belongs on the plain screen
  Screen screen;
  screen.draw(first);
  while (screen.wait(kEvery, session.interrupt.descriptor())) {
    const Answer alive = client.http().connect();
    screen.draw(alive.outcome == Exchange::NoEngine ? "no engine runs" + hint
                                                    : picture(look(client), hint, rows()));
  }
  return kExitDone;
}

}  // namespace hpcbatch
