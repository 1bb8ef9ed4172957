#include "estimate/tables.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace hpcbatch::estimate {
namespace {

namespace json = boost::json;

std::string percent_at(const json::object& row, const char* key) {
  return fmt::format("{:.1f} %", number_at(row, key) * 100);
}

std::string blocks_at(const json::object& row, const char* key) {
  std::string text;
  if (const json::array* blocks = array_at(row, key)) {
    for (const json::value& each : *blocks)
      text += fmt::format("{}{:.1f}", text.empty() ? "" : " ", each.to_number<double>() * 100);
  }
  return text;
}

std::string protocol_table(const json::object& protocol) {
  using Side = Table::Side;
  Table table({{"ESTIMATE"},
               {"MSE LOG10", Side::Right},
               {"WITHIN 2X", Side::Right},
               {"WITHIN 3X", Side::Right},
               {"MEDIAN OFF", Side::Right},
               {"90 % BOUND HELD IN % OF EACH BLOCK"}});
  for (const json::value& each : *array_at(protocol, "rows")) {
    const json::object& row = each.as_object();
    table.add({text_at(row, "who"), fmt::format("{:.3f}", number_at(row, "mean_square")),
               percent_at(row, "within_2"), percent_at(row, "within_3"),
               fmt::format("{:.1f} h", number_at(row, "median_error_h")),
               blocks_at(row, "held_90")});
  }
  const bool is_random = text_at(protocol, "name") == "random";
  return fmt::format("\n{}\n{}",
                     is_random ? "a tenth of the days, told by all others (three draws)"
                               : "past to the next five days",
                     table.text());
}

}  // namespace

std::string tables(const json::object& found) {
  const auto day_at = [&](const char* key) {
    return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(number_at(found, key))));
  };
  std::string text =
      fmt::format("{:.0f} jobs in {:.0f} polls, {} to {}\n", number_at(found, "jobs"),
                  number_at(found, "polls"), day_at("from"), day_at("until"));
  for (const json::value& protocol : *array_at(found, "protocols"))
    text += protocol_table(protocol.as_object());
  for (const json::value& why : *array_at(found, "unused"))
    text += fmt::format("not used: {}\n", std::string(why.as_string()));
  return text;
}

}  // namespace hpcbatch::estimate
