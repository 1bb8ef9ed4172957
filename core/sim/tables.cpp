#include "sim/tables.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace hpcbatch::sim {
namespace {

namespace json = boost::json;

std::string day_at(const json::object& object, const char* key) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(number_at(object, key))));
}

std::string hours(double value) {
  return fmt::format("{:.2f} h", value);
}
std::string percent(double part) {
  return fmt::format("{:.0f} %", part * 100);
}

std::string whole_table(const json::object& whole) {
  using Side = Table::Side;
  Table table({{""},
               {"MEAN WAIT", Side::Right},
               {"BY NODE-HOURS", Side::Right},
               {"MEDIAN", Side::Right},
               {"90 % UNTIL", Side::Right},
               {"AT ONCE", Side::Right}});
  for (const char* which : {"real", "played"}) {
    const json::object& waits = *object_at(whole, which);
    table.add({which, hours(number_at(waits, "mean_h")), hours(number_at(waits, "by_node_hours_h")),
               hours(number_at(waits, "median_h")), hours(number_at(waits, "p90_h")),
               percent(number_at(waits, "at_once"))});
  }
  std::string text = table.text(80);
  text += fmt::format("single jobs: {} off on average, logarithms correlate at {:.2f}\n",
                      hours(number_at(whole, "mean_error_h")), number_at(whole, "log_correlation"));
  if (number_at(whole, "never_started") > 0)
    text += fmt::format("{:.0f} more jobs never started when played, and are left out above\n",
                        number_at(whole, "never_started"));
  text += "taken from the trace: ";
  if (flag_at(whole, "nodes_over_time")) text += "nodes as they were in use; ";
  if (number_at(whole, "most_of_user") > 0)
    text += fmt::format("{:.0f} jobs of a user at once;", number_at(whole, "most_of_user"));
  text += fmt::format("\n{:.0f} jobs that came after another of their user\n",
                      number_at(whole, "dependencies"));
  text += fmt::format("played {:.0f} million times as fast as it was\n",
                      number_at(whole, "speed") / 1e6);
  return text;
}

std::string chain_table(const json::object& chain, double cpus_of_a_node) {
  using Side = Table::Side;
  const double nodes = number_at(chain, "pilot_nodes") / std::max(cpus_of_a_node, 1.0);
  std::string text = fmt::format("{:.0f} chains of two pilots of {:.0f} node{}, {} to {}\n",
                                 number_at(chain, "count"), nodes, nodes == 1 ? "" : "s",
                                 day_at(chain, "from"), day_at(chain, "until"));
  Table table({{"POLICY"},
               {"WITHOUT A PILOT", Side::Right},
               {"LESS", Side::Right},
               {"TWO PILOTS", Side::Right},
               {"NO GAP", Side::Right}});
  for (const json::value& each : *array_at(chain, "policies")) {
    const json::object& policy = each.as_object();
    table.add({text_at(policy, "policy"), hours(number_at(policy, "interruption_h")),
               percent(number_at(policy, "cut")), hours(number_at(policy, "overlap_h")),
               percent(number_at(policy, "uninterrupted"))});
  }
  text += table.text(80);
  const json::object& bounds = *object_at(chain, "bounds");
  text += fmt::format("first pilots that started by the look-ahead's 50 %: {}, by its 90 %: {}{}\n",
                      percent(number_at(bounds, "by_50")), percent(number_at(bounds, "by_90")),
                      bounds.at("doubted_after").is_null()
                          ? ""
                          : fmt::format(";\nits bound was no longer trusted after {:.0f}",
                                        number_at(bounds, "doubted_after")));
  return text;
}

}  // namespace

std::string tables(const json::object& found) {
  std::string text =
      fmt::format("{:.0f} jobs, {} to {}, {:.0f} {} at most in use{}\n", number_at(found, "jobs"),
                  day_at(found, "from"), day_at(found, "until"), number_at(found, "most_in_use"),
                  number_at(found, "cpus_of_a_node") > 0 ? "cpus of shared nodes" : "nodes",
                  number_at(found, "skipped") > 0
                      ? fmt::format("; {:.0f} lines skipped", number_at(found, "skipped"))
                      : "");
  for (const json::value& note : *array_at(found, "notes"))
    text += "note: " + std::string(note.as_string()) + "\n";
  text += whole_table(*object_at(found, "whole"));
  if (const json::array* episodes = array_at(found, "episodes")) {
    for (const json::value& chain : *episodes)
      text += "\n" + chain_table(chain.as_object(), number_at(found, "cpus_of_a_node"));
  }
  return text;
}

}  // namespace hpcbatch::sim
