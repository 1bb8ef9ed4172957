// One exchange with the pilot program on a site: an order goes in on its standard input, a report
// comes back on its standard output.  All of it blocks.
#pragma once

#include "sites/pilot_program.hpp"

#include "hpcbatch/result.hpp"
#include "hpcbatch/transport.hpp"

#include <memory>
#include <string>

namespace hpcbatch {

/// A transport of its own and what is known of the site by it.
struct ExchangeTools {
  std::shared_ptr<Transport> transport;
  bool program_is_there{false};
};

/// The words of `what` in the program, "spool FOLDER" or "files FOLDER".
struct ExchangeCommand {
  std::string program;  ///< its path there
  std::string what;
  std::string folder;
};

/// `order` and what comes back: serialized messages.
Result<std::string> run_exchange(Transport& transport, const ExchangeCommand& command,
                                 const std::string& order, Deadline deadline);

/// The same with the workspace, where the program is put first unless it is known to be there.
Result<std::string> run_exchange(ExchangeTools& tools, const PilotProgram& program,
                                 const std::string& what, const std::string& workspace,
                                 const std::string& order, Deadline deadline);

template <class Report>
Result<Report> parsed_report(const Result<std::string>& bytes) {
  if (!bytes) return bytes.error();
  Report report;
  if (!report.ParseFromString(*bytes))
    return Error{Error::Kind::Transient, "the exchange's answer cannot be read"};
  return report;
}

}  // namespace hpcbatch
