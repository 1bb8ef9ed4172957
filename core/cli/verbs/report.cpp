// `report`: what runs asked for and used.
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/report_page.hpp"
#include "cli/show/report_table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "posix/write_all.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
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

/// Whoever looks at the old one meanwhile sees that one whole.
void write_page(const std::string& file, const std::string& page) {
  const std::string part = file + ".part";
  const int descriptor =
      ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  int error = descriptor < 0 ? errno : write_all(descriptor, page);
  if (descriptor >= 0 && ::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(part.c_str(), file.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (descriptor >= 0) ::unlink(part.c_str());
  throw CommandError(kExitUsage, "cannot write " + file + ": " + std::strerror(error));
}

}  // namespace

int report_usage(const ReportCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  json::object report = asked(client, command, command.by);
  if (command.json) {
    print_json(report);
    if (flag_at(report, "metrics_cut"))
      std::fputs("hpcbatch: the metrics of older tasks are left out; a later --since shows less\n",
                 stderr);
    return kExitDone;
  }
  report.erase("trouble");
  if (!command.html.empty()) {
    const json::object by_kind = command.by == "kind" ? report : asked(client, command, "kind");
    write_page(command.html, report_page(by_kind, asked(client, command, "day")));
    return kExitDone;
  }
  print(command.csv ? report_csv(report, command.by)
                    : report_text(report, command.by, columns_of_output()));
  return kExitDone;
}

}  // namespace hpcbatch
