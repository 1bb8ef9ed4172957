// `report`: what runs asked for and used, and traces of tasks.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/otlp.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "posix/files.hpp"

#include <boost/json/serialize.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// What has ended is added up first, of an old store all of it.
constexpr std::chrono::minutes kAnswerTime{5};

json::object asked(EngineClient& client, const ReportCommand& command, const std::string& by) {
  std::string target = "/v1/report?by=" + by;
  if (command.json) target += "&metrics=1";
  if (command.since) target += "&since=" + std::to_string(*command.since);
  return client.get(target, kAnswerTime);
}

[[noreturn]] void fail(const std::string& file, int error) {
  throw CommandError(kExitUsage, "cannot write " + file + ": " + std::strerror(error));
}

/// Where a link leads; a page replaces a file, or nothing.
std::string place_of_page(const std::string& file) {
  std::error_code error;
  auto there = std::filesystem::weakly_canonical(file, error);
  if (error) fail(file, error.value());
  if (std::filesystem::is_symlink(there, error))  // which leads to nothing yet
    there = there.parent_path() / std::filesystem::read_symlink(there, error);
  const auto status = std::filesystem::status(there, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw CommandError(
        kExitUsage, "cannot write " + file + ": it is no file; a page replaces a file, or nothing");
  return there.string();
}

/// Whoever looks at the old one meanwhile sees that one whole.
void write_page(const std::string& file, const std::string& page) {
  const std::string whole = place_of_page(file);
  std::string part = whole + ".XXXXXX";
  const int descriptor = ::mkostemp(part.data(), O_CLOEXEC);
  if (descriptor < 0) fail(file, errno);
  int error = write_all(descriptor, page);
  if (error == 0 && ::fchmod(descriptor, 0666 & ~own_umask()) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(part.c_str(), whole.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(part.c_str());
  fail(file, error);
}

std::string name_of_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Tasks that have ended since the day that was asked for, a page of them a line.
void write_traces(EngineClient& client, const ReportCommand& command) {
  constexpr std::int64_t kWeek = std::int64_t{7} * 24 * 3600;
  const json::object engine = client.get("/v1/engine");
  const TraceSource source{name_of_host(), text_at(engine, "home"), text_at(engine, "version")};
  const std::int64_t since = command.since.value_or(std::time(nullptr) - kWeek);
  const std::string target =
      "/v1/tasks?open=1&full=1&limit=5000&ended_since=" + std::to_string(since);
  std::string text, before;
  do {
    json::object page =
        client.get(target + (before.empty() ? "" : "&before=" + before), kAnswerTime);
    json::array& tasks = page.at("tasks").as_array();
    before = tasks.empty() ? "" : text_at(tasks.back().as_object(), "id");
    // A line has the last attempt alone.
    for (json::value& task : tasks)
      if (number_at(task.as_object(), "attempt") > 1)
        task = client.get("/v1/tasks/" + text_at(task.as_object(), "id"));
    text += json::serialize(otlp_traces(tasks, source)) + "\n";
  } while (!before.empty());
  write_page(command.otlp, text);
}

}  // namespace

int perform(const ReportCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  if (!command.otlp.empty()) {
    write_traces(client, command);
    return kExitDone;
  }
  json::object report = asked(client, command, command.by);
  // What ended since then is missing in it.
  const int code = report.contains("trouble") ? kExitTaskFailed : kExitDone;
  if (command.json) {
    print_json(report);
    if (flag_at(report, "metrics_cut"))
      say("the metrics of older tasks are left out; a later --since shows less");
    return code;
  }
  report.erase("trouble");
  if (!command.html.empty()) {
    const json::object by_kind = command.by == "kind" ? report : asked(client, command, "kind");
    write_page(command.html, report_page(by_kind, asked(client, command, "day")));
    return code;
  }
  print(command.csv ? report_csv(report, command.by)
                    : report_text(report, command.by, columns_of_output()));
  return code;
}

}  // namespace hpcbatch
