#include "cli/show/waits_table.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"

#include <boost/json/array.hpp>

#include <cmath>
#include <cstdio>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using Side = Table::Side;

std::string percent_at(const json::object& object, const char* key) {
  if (!object.contains(key)) return "";
  return std::to_string(std::lround(number_at(object, key) * 100)) + " %";
}

std::string two_places(double number) {
  char text[32];  // NOLINT(cppcoreguidelines-avoid-c-arrays)
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}

std::string words_on(const json::object& shape) {
  const std::string by = text_at(shape, "by");
  if (by == "model") return "by a model of " + text_at(shape, "from") + " waits";
  if (by != "queue") return text_at(shape, "message");
  return shape.contains("wait_50") ? "as its queue looks"
                                   : "as its queue looks, should others run as long as they may";
}

std::string shapes_table(const json::array& shapes, std::time_t now,
                         std::optional<std::size_t> room) {
  Table table({{"SITE"},
               {"SHAPE"},
               {"WAITS", Side::Right},
               {"50 % IN", Side::Right},
               {"90 % IN", Side::Right},
               {"50 % BY"},
               {"90 % BY"},
               {""}});
  for (const json::value& each : shapes) {
    const json::object& shape = each.as_object();
    table.add({text_at(shape, "site"), text_at(shape, "shape"), text_at(shape, "waits"),
               duration_at(shape, "wait_50"), duration_at(shape, "wait_90"),
               moment_at(shape, "start_50", now), moment_at(shape, "start_90", now),
               words_on(shape)});
  }
  return table.text(room, Table::Last::Wrapped);
}

std::string queued_table(const json::array& queued, std::time_t now,
                         std::optional<std::size_t> room) {
  Table table({{"ALLOCATION"},
               {"BATCH ID"},
               {"SITE"},
               {"SHAPE"},
               {"WAITED", Side::Right},
               {"50 % BY"},
               {"90 % BY"}});
  for (const json::value& each : queued) {
    const json::object& one = each.as_object();
    const bool is_known = one.contains("by");
    table.add({text_at(one, "name"), text_at(one, "batch_id"), text_at(one, "site"),
               text_at(one, "shape"), duration_at(one, "waited"),
               is_known ? moment_at(one, "start_50", now) : "not known",
               is_known ? moment_at(one, "start_90", now) : ""});
  }
  return table.text(room);
}

}  // namespace

std::string waits_text(const json::object& waits, std::time_t now,
                       std::optional<std::size_t> room) {
  const json::array* shapes = array_at(waits, "shapes");
  if (!shapes || shapes->empty()) return "no site has a shape to wait for\n";
  std::string text = shapes_table(*shapes, now, room);
  const json::array* queued = array_at(waits, "queued");
  if (queued && !queued->empty()) text += "\n" + queued_table(*queued, now, room);
  return text;
}

std::string waits_score_text(const json::object& waits, std::optional<std::size_t> room) {
  Table table({{"SITE"},
               {"SHAPE"},
               {"BY"},
               {"TOLD", Side::Right},
               {"BY 50 %", Side::Right},
               {"BY 90 %", Side::Right},
               {"MSE LOG10", Side::Right},
               {"WITHIN 2X", Side::Right},
               {"WITHIN 3X", Side::Right}});
  if (const json::array* shapes = array_at(waits, "shapes")) {
    for (const json::value& each : *shapes) {
      const json::array* told = array_at(each.as_object(), "told");
      if (!told) continue;
      for (const json::value& one : *told) {
        const json::object& score = one.as_object();
        table.add({text_at(each.as_object(), "site"), text_at(each.as_object(), "shape"),
                   text_at(score, "by"), text_at(score, "waits"), percent_at(score, "by_50"),
                   percent_at(score, "by_90"),
                   score.contains("log_mse") ? two_places(number_at(score, "log_mse")) : "",
                   percent_at(score, "within_2x"), percent_at(score, "within_3x")});
      }
    }
  }
  if (table.empty())
    return "since the engine's start no allocation has started of which it had been told when\n";
  return table.text(room);
}

}  // namespace hpcbatch
