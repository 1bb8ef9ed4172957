// What a command is told on a stream and answers on one, each as a whole.
#pragma once

#include "pilot/base/log_line.hpp"
#include "posix/write_all.hpp"
#include "wire/spool.hpp"

#include "hpcbatch/result.hpp"

#include <unistd.h>
#include <string>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
