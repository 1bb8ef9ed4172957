// Commands of this program that a site is asked for through the transport: one exchange of
// files, or with pilots whose links are files.
#pragma once

#include "hpcbatch/result.hpp"
#include "pilot/base/log_line.hpp"
#include "posix/files.hpp"
#include "wire/relay.hpp"
#include "wire/wire.pb.h"

#include <string>

#include <unistd.h>

namespace hpcbatch::pilot {

// What a command is told on a stream and answers on one, each as a whole.

Result<std::string> read_all(int from);

/// Carries out the engine's order, a sealed message on standard input, and reports on standard
/// output; the exit status.
template <class Order, class CarryOut>
int answer_order(const std::string& command, const CarryOut& carry_out) {
  set_log_name("hpcbatch-pilot " + command);
  const auto input = read_all(STDIN_FILENO);
  const auto text = input ? wire::opened_exchange(*input) : input;
  Order order;
  if (!text || !order.ParseFromString(*text)) {
    log_line("cannot read what the engine orders: " +
             (text ? "it is no order" : text.error().text));
    return 2;
  }
  const auto report = carry_out(order);
  if (!report) {
    log_line(report.error().text);
    return 1;
  }
  return write_all(STDOUT_FILENO, wire::sealed_exchange(report->SerializeAsString())) == 0 ? 0 : 1;
}

// hpcbatch-pilot files WORKSPACE: one exchange of files between the engine and a site whose file
// system it does not see.

/// Does what the order says, as much of it as there is time for.  May be done twice.  An error
/// where nothing could be done.
Result<wire::FilesReport> exchange_files(const std::string& workspace,
                                         const wire::FilesOrder& order);

/// The same as a command: an order on standard input, a report on standard output.
int files_by_standard_streams(const std::string& workspace);

// hpcbatch-pilot spool WORKSPACE: one exchange between the engine and the pilots whose links are
// carried by files.  The engine runs it on the site whenever it wants to say or to hear something.

/// Puts the order's pieces there, removes those that were taken, and takes along what the pilots
/// have said.  May be done twice.
/// An error where the folder cannot be seen: then nothing is concluded of who is gone.
Result<wire::SpoolReport> exchange(const std::string& spool, const wire::SpoolOrder& order);

/// The same as a command: an order on standard input, a report on standard output.
int exchange_by_standard_streams(const std::string& workspace);

}  // namespace hpcbatch::pilot
