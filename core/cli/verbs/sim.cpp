// `sim`: plays what accounting kept of a cluster's past, as the look-ahead would play it.
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "foresight/replay/fidelity.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;
using namespace foresight;

/// Packed by gzip or not; `-`: standard input.
std::string text_of_file(const std::string& file) {
  const int descriptor =
      file == "-" ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw CommandError(kExitUsage, "cannot read " + file + ": " + std::strerror(errno));
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(::gzdopen(descriptor, "rb"), ::gzclose);
  if (!in) throw CommandError(kExitUsage, "cannot read " + file + ": no memory");
  std::string text;
  std::array<char, 1U << 16U> part;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (;;) {
    const int count = ::gzread(in.get(), part.data(), part.size());
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    if (count > 0) continue;
    int error = Z_OK;
    const char* why = ::gzerror(in.get(), &error);
    if (error == Z_ERRNO) why = std::strerror(errno);
    // A file that was cut in the middle ends without an error of its own.
    if (error == Z_BUF_ERROR) why = "it is cut off";
    if (error != Z_OK && error != Z_STREAM_END)
      throw CommandError(kExitUsage, "cannot read " + file + ": " + why);
    return text;
  }
}

json::object json_of(const Waits& waits) {
  return {{"mean_h", waits.mean},
          {"by_node_hours_h", waits.by_node_hours},
          {"median_h", waits.median},
          {"p90_h", waits.most_of_ten},
          {"at_once", waits.at_once}};
}

json::object played(const SimCommand& command, Trace trace) {
  const auto over_time = nodes_over_time(trace);
  ClusterModel model = large_site(most_nodes_in_use(trace), command.backfill);
  model.nodes = over_time;
  // Where nodes are shared the cluster is one of cpus.
  if (command.nodes)
    model.nodes = {
        {0, static_cast<std::int32_t>(*command.nodes * std::max(trace.cpus_of_a_node, 1))}};
  // What accounting tells holds age already.
  if (trace.has_priorities) {
    model.age_weight = 10;
    model.size_weight = 0;
  }
  model.most_of_user = bound_of_users(trace);
  const std::size_t dependencies = find_dependencies(trace, over_time);
  const Fidelity found = play_trace(trace, model);
  if (found.jobs == 0 && found.never_started == 0)
    throw std::invalid_argument(
        "the trace is too short: what is submitted in the first seven days after its first start "
        "warms the cluster up and is not counted, and nothing is left; ask for more days of it");
  return {{"jobs", found.jobs},
          {"never_started", found.never_started},
          {"real", json_of(found.real)},
          {"played", json_of(found.played)},
          {"mean_error_h", found.mean_error},
          {"log_correlation", found.correlation},
          {"speed", found.took > 0 ? found.traced * kHour / found.took : 0},
          {"dependencies", dependencies},
          {"most_of_user", model.most_of_user},
          {"nodes_over_time", !command.nodes}};
}

json::object replayed(const SimCommand& command, Trace trace) {
  json::array notes;
  for (const std::string& note : trace.notes) notes.emplace_back(note);
  const std::int32_t most = most_nodes_in_use(trace);
  json::object all{
      {"jobs", trace.jobs.size()},
      {"skipped", trace.skipped},
      {"from", trace.jobs.front().job.submitted},
      {"until", trace.jobs.back().job.submitted},
      {"nodes", command.nodes ? *command.nodes * std::max(trace.cpus_of_a_node, 1) : most},
      {"most_in_use", most},
      {"cpus_of_a_node", trace.cpus_of_a_node},
      {"notes", std::move(notes)}};
  all["whole"] = played(command, std::move(trace));
  return all;
}

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
  return text + whole_table(*object_at(found, "whole"));
}

}  // namespace

int perform(const SimCommand& command, const Session& session) {
  session.interrupt.let_through();  // reading and playing wait for nothing that hears of it
  std::istringstream in(text_of_file(command.trace));
  try {
    const json::object found = replayed(command, read_trace(in, command.partition));
    if (command.json)
      print_json(found);
    else
      print(tables(found));
    return kExitDone;
  } catch (const std::invalid_argument& error) {
    throw CommandError(kExitUsage, (command.trace == "-" ? "standard input" : command.trace) +
                                       ": " + error.what());
  }
}

}  // namespace hpcbatch
