// `report`: what runs asked for and used.
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/process/surroundings.hpp"
#include "cli/show/report_table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "posix/files.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

}  // namespace

int report_usage(const ReportCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
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
