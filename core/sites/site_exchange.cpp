#include "sites/site_exchange.hpp"

#include "plugin_host/guarded.hpp"
#include "wire/spool.hpp"

#include <fmt/format.h>

namespace hpcbatch {

Result<std::string> run_exchange(Transport& transport, const ExchangeCommand& command,
                                 const std::string& order, Deadline deadline) {
  const auto output = guarded("transport", [&] {
    return transport.run({.argv = {command.program, command.what, command.folder},
                          .environment = {},
                          .input = wire::sealed_exchange(order)},
                         deadline);
  });
  if (!output) return output.error();
  if (output->timed_out) return Error{Error::Kind::Transient, "the exchange did not end in time"};
  if (output->exit_code != 0) {
    return Error{Error::Kind::Transient,
                 fmt::format("the exchange failed (exit {}): {}", output->exit_code,
                             output->standard_error.substr(0, output->standard_error.find('\n')))};
  }
  auto text = wire::opened_exchange(output->standard_output);
  if (!text) {
    return Error{Error::Kind::Transient,
                 "the exchange's answer cannot be read: " + text.error().text};
  }
  return text;
}

Result<std::string> run_exchange(ExchangeTools& tools, const PilotProgram& program,
                                 const std::string& what, const std::string& workspace,
                                 const std::string& order, Deadline deadline) {
  if (!tools.program_is_there) {
    const auto delivered = guarded(
        "transport", [&] { return program.deliver(*tools.transport, workspace, deadline); });
    if (!delivered) return delivered.error();
  }
  auto report = run_exchange(*tools.transport, {program.path_in(workspace), what, workspace}, order,
                             deadline);
  // It may have been removed there.
  tools.program_is_there = report.has_value();
  return report;
}

}  // namespace hpcbatch
