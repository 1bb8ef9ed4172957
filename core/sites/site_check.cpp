#include "sites/site_check.hpp"

#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/submit_trial.hpp"
#include "hpcbatch/transport.hpp"
#include "model/quantities.hpp"
#include "model/site.hpp"
#include "plugin_host/guarded.hpp"
#include "sites/allocation_request.hpp"
#include "sites/machine.hpp"
#include "sites/pilot_program.hpp"
#include "sites/workspace_files.hpp"
#include "wire/node_addresses.hpp"
#include "wire/relay.hpp"
#include "wire/wire.pb.h"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr const char* kTrialName = "hbtrial";

/// A line for each shape; none where the plugin knows of no such test.  Scripts are written below
/// `folder`, which exists on the site.  On a lane: the calls block.
std::vector<SiteCheck> try_shapes(const Site& site, const Scheduler& scheduler,
                                  Transport& transport, const std::string& folder,
                                  Deadline deadline) {
  const auto* trial = dynamic_cast<const SubmitTrial*>(&scheduler);
  if (!trial) return {};
  std::vector<SiteCheck> checks;
  for (const Shape& shape : site.shapes) {
    AllocationRequest request = allocation_request(site, shape, kTrialName, {"/bin/true"});
    request.directory = folder;
    const std::string script_at = folder + "/trial.sh";
    const auto said = guarded("scheduler", [&]() -> Result<std::string> {
      const std::string script = scheduler.script(request);
      if (auto put = write_files(transport, {{script_at, script, 0700}}, deadline); !put)
        return put.error();
      auto output = transport.run(trial->try_submit(request, script_at), deadline);
      if (!output) return output.error();
      return trial->read_try_submit(*output);
    });
    checks.push_back({"submit " + shape.name, said.has_value(),
                      said ? *said : fmt::format("it would not be taken: {}", said.error().text)});
  }
  return checks;
}

constexpr auto kSurveyLimit = 60s;
constexpr auto kTrialLimit = 30s;
constexpr auto kTrustLimit = 30s;
constexpr auto kWayLimit = 20s;
constexpr auto kModulesLimit = 30s;
constexpr auto kEndLimit = 5s;

Deadline sooner(Deadline deadline, std::chrono::seconds limit) {
  return std::min<Deadline>(deadline, Steady::now() + limit);
}

std::string in_a_row(const std::vector<wire::Address>& addresses) {
  return joined(addresses, ", ", [](const wire::Address& address) {
    return fmt::format("{} port {}", address.place, address.port);
  });
}

std::string gpus_of(const std::map<std::string, double>& gpus) {
  if (gpus.empty()) return "no GPU";
  return joined(gpus, ", ", [](const auto& of) {
    return fmt::format("{:g} {}", of.second, of.first.empty() ? "gpu" : of.first);
  });
}

std::map<std::string, double> gpus_of(const Shape& shape) {
  std::map<std::string, double> gpus;
  for (const auto& [name, amount] : shape.capacity.entries()) {
    if (name.starts_with(kGpuPrefix)) gpus[name.substr(kGpuPrefix.size())] = amount.value();
  }
  return gpus;
}

/// Names of kinds are the batch system's in one place and the configuration's in the other, so only
/// their number is compared where a name is not known.
bool has_gpus(const NodeKind& kind, const std::map<std::string, double>& wanted) {
  double there = 0;
  double all = 0;
  for (const auto& [name, count] : kind.gpus) there += count;
  for (const auto& [name, count] : wanted) {
    const auto same = kind.gpus.find(name);
    if (same != kind.gpus.end() && same->second < count) return false;
    all += count;
  }
  return all <= there;
}

/// Why no node of the partition is enough; nothing where one is.  What is 0 is not known.
std::optional<std::string> why_too_small(const Shape& shape, const SurveyedPartition& partition,
                                         bool gpus_are_told) {
  const double cpus = shape.capacity.get(kCpus).value();
  const auto memory = static_cast<std::uint64_t>(shape.capacity.get(kMemory).whole());
  const auto gpus = gpus_are_told ? gpus_of(shape) : std::map<std::string, double>();
  double most_cpus = 0;
  std::uint64_t most_memory = 0;
  std::uint32_t nodes = 0;
  bool has_any_gpus = partition.kinds.empty();
  bool fits = partition.kinds.empty();
  for (const NodeKind& kind : partition.kinds) {
    nodes += kind.nodes;
    most_cpus = std::max(most_cpus, kind.cpus);
    most_memory = std::max(most_memory, kind.memory);
    has_any_gpus = has_any_gpus || has_gpus(kind, gpus);
    fits = fits || ((kind.cpus == 0 || cpus <= kind.cpus) &&
                    (kind.memory == 0 || memory <= kind.memory) && has_gpus(kind, gpus));
  }
  if (shape.nodes > nodes && nodes != 0)
    return fmt::format("asks for {} of {}", show_count(shape.nodes, "node"), nodes);
  if (fits) return std::nullopt;
  if (most_cpus != 0 && cpus > most_cpus)
    return fmt::format("asks for {:g} cpus of {:g}", cpus, most_cpus);
  if (most_memory != 0 && memory > most_memory)
    return fmt::format("asks for {} MB of memory of {}", memory >> 20, most_memory >> 20);
  if (!has_any_gpus) return fmt::format("asks for {}, which no node there has", gpus_of(gpus));
  return "no node there has all that it asks for: cpus, memory and GPUs together";
}

SiteCheck check_in(const Shape& shape, const SurveyedPartition& partition, bool gpus_are_told) {
  SiteCheck line{"shape " + shape.name, false, ""};
  if (auto why = why_too_small(shape, partition, gpus_are_told)) {
    line.text = std::move(*why);
  } else if (partition.walltime && shape.walltime > *partition.walltime) {
    line.text = fmt::format("its walltime is longer than the partition's {} s",
                            partition.walltime->count());
  } else if (!partition.is_open) {
    line.text = fmt::format("partition {} takes no batch jobs now{}", partition.name,
                            partition.why_closed.empty() ? "" : ": it is " + partition.why_closed);
  } else {
    line.ok = true;
    line.text = "fits partition " + (partition.name.empty() ? "(default)" : partition.name);
  }
  return line;
}

SiteCheck check_shape(const Shape& shape, const Survey& survey) {
  // A batch system that tells of none may keep them to itself.
  const bool gpus_are_told =
      std::any_of(survey.partitions.begin(), survey.partitions.end(), [](const auto& partition) {
        return std::any_of(partition.kinds.begin(), partition.kinds.end(),
                           [](const NodeKind& kind) { return !kind.gpus.empty(); });
      });
  SiteCheck line{"shape " + shape.name, false,
                 fmt::format("there is no partition '{}'", shape.partition)};
  // Which one is the default is not told: any may be.
  for (const SurveyedPartition& partition : survey.partitions) {
    if (partition.name != shape.partition && !shape.partition.empty()) continue;
    line = check_in(shape, partition, gpus_are_told);
    if (line.ok) break;
  }
  return line;
}

// --- ways back ---------------------------------------------------------------------------------

/// One more piece of what the relay says; empty at its end.
Result<std::string> next_bytes(int descriptor, Deadline deadline) {
  std::array<char, 4096> room{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now()).count();
    pollfd look{descriptor, POLLIN, 0};
    const int ready = left <= 0 ? 0 : ::poll(&look, 1, static_cast<int>(left));
    if (ready == 0) return Error{Error::Kind::Transient, "it did not say in time where it listens"};
    const ssize_t n = ready < 0 ? -1 : ::read(descriptor, room.data(), room.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    return std::string(room.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
  }
}

/// The first frame of a relay says where it listens.
Result<std::vector<wire::Address>> first_words(int descriptor, Deadline deadline) {
  wire::RelayFrames frames;
  for (;;) {
    const auto bytes = next_bytes(descriptor, deadline);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return Error{Error::Kind::Transient, "it ended at once"};
    const auto heard = frames.receive(*bytes);
    if (!heard) return heard.error();
    for (const wire::RelayFrame& frame : *heard) {
      if (frame.kind == wire::RelayFrame::Kind::Listening)
        return wire::parse_relay_file(frame.bytes, "what the relay says");
      if (frame.kind == wire::RelayFrame::Kind::Ended)
        return Error{Error::Kind::Transient, frame.bytes};
    }
  }
}

/// Lets the relay end and waits for that, for its file is removed with the folder.  Takes the
/// descriptor.
void end_relay(int descriptor, Deadline deadline) {
  if (::shutdown(descriptor, SHUT_WR) == 0) {
    for (auto bytes = next_bytes(descriptor, deadline); bytes && !bytes->empty();)
      bytes = next_bytes(descriptor, deadline);
  }
  ::close(descriptor);
}

/// Why it does not run there; a file system for data may be mounted `noexec`.
std::optional<std::string> try_program(const std::string& program, Transport& transport,
                                       Deadline deadline) {
  const CommandLine command{.argv = {program, "--version"}, .environment = {}, .input = {}};
  const auto output = guarded("transport", [&] { return transport.run(command, deadline); });
  if (!output) return output.error().text;
  if (output->exit_code == 0 && !output->timed_out) return std::nullopt;
  const std::string& said = output->standard_error;
  return fmt::format("cannot run {} there: {}; the workspace must be where programs may be run",
                     program,
                     said.empty() ? fmt::format("exit status {}", output->exit_code)
                                  : said.substr(0, said.find('\n')));
}

Result<std::vector<wire::Address>> try_relay(const Site& site, const PilotProgram& program,
                                             const std::string& folder, Transport& transport,
                                             Deadline deadline) {
  CommandLine command{
      .argv = {program.path_in(site.workspace), "relay", folder}, .environment = {}, .input = {}};
  if (!site.relay_interface.empty()) command.argv.push_back(site.relay_interface);
  const auto stream = guarded("transport", [&] { return transport.open(command, deadline); });
  if (!stream) return stream.error();
  auto said = first_words(*stream, deadline);
  end_relay(*stream, sooner(deadline, kEndLimit));
  return said;
}

Result<void> try_spool(const Site& site, const PilotProgram& program, const std::string& folder,
                       Transport& transport, Deadline deadline) {
  wire::SpoolOrder order;
  order.set_prefix("hbcheck");
  order.set_most_bytes(0);
  const auto report = parsed_report<wire::SpoolReport>(
      run_exchange(transport, {program.path_in(site.workspace), "spool", folder},
                   order.SerializeAsString(), deadline));
  if (!report) return report.error();
  return {};
}

/// A way that pilots of the site do not take may be closed.
SiteCheck way(const Site& site, LinkKind kind, const char* name, bool works,
              const std::string& text) {
  const bool is_taken = has_way(site, kind);
  return {fmt::format("link {}", name), works || !is_taken,
          is_taken ? text : "not taken, `link` leaves it out: " + text};
}

SiteCheck check_direct(const Site& site) {
  std::vector<std::string> here = direct_addresses(site, outward_addresses());
  const auto say = [&](bool works, const std::string& text) {
    return way(site, LinkKind::Direct, "direct", works, text);
  };
  if (here.empty())
    return say(false,
               "this machine has no address but loopback; pilots go another way, or name the one "
               "that nodes reach as 'interface'");
  const std::string all = fmt::format("{}", fmt::join(here, " or "));
  std::erase_if(here, [](const std::string& one) { return !has_address(one); });
  if (here.empty())
    return say(false,
               fmt::format("this machine has no address {} now; name another 'interface'", all));
  const bool is_own = std::all_of(here.begin(), here.end(), wire::is_loopback);
  return say(true, fmt::format("needs a route from the nodes to {}{}", fmt::join(here, " or "),
                               is_own ? ", which only this machine has to itself" : ""));
}

void check_ways(const Site& site, const PilotProgram& program, const std::string& folder,
                Transport& transport, Transport& streams, Deadline deadline,
                std::vector<SiteCheck>& checks) {
  checks.push_back(check_direct(site));
  const auto delivered =
      guarded("transport", [&] { return program.deliver(transport, site.workspace, deadline); });
  if (!delivered) {
    checks.push_back({"pilot program", false, delivered.error().text});
    return;
  }
  if (const auto trouble =
          try_program(program.path_in(site.workspace), transport, sooner(deadline, kWayLimit))) {
    checks.push_back({"pilot program", false, *trouble});
    return;
  }
  const auto relay = try_relay(site, program, folder, streams, sooner(deadline, kWayLimit));
  checks.push_back(
      way(site, LinkKind::Relay, "relay", relay.has_value(),
          relay ? fmt::format("a relay can listen there; needs a route from the nodes to {}",
                              in_a_row(*relay))
                : fmt::format("cannot run a relay there: {}; try '{} relay {}' on the login node",
                              relay.error().text, program.path_in(site.workspace), folder)));
  const auto spool = try_spool(site, program, folder, transport, sooner(deadline, kWayLimit));
  checks.push_back(way(site, LinkKind::Spool, "spool", spool.has_value(),
                       spool ? "an exchange by files works; needs nodes that see " + site.workspace
                             : "cannot exchange files there: " + spool.error().text));
}

/// Before anything is put there.
SiteCheck check_trust(const Site& site, Transport& transport, Deadline deadline) {
  const auto looked = guarded("transport", [&] {
    return transport.run(look_at_workspace(site.workspace, site.trust_group), deadline);
  });
  if (!looked) return {"trust", false, looked.error().text};
  const auto finding = read_workspace(*looked);
  if (!finding) return {"trust", true, "what lies above the workspace cannot be looked at there"};
  const auto found = distrust(*finding, site.trust_group);
  if (!found)
    return {"trust", true, "nobody else can put anything into " + site.workspace + " or its place"};
  return {"trust", !found->is_refusal, found->text + found->group_hint};
}

constexpr const char* kScript = R"sh(
command -v module >/dev/null 2>&1 || [ ! -r /etc/profile ] || . /etc/profile >/dev/null 2>&1
command -v module >/dev/null 2>&1 || { echo hbnone; exit 0; }
echo hbbegin
module -t avail 2>&1
echo hbend
)sh";

// What tasks of pilots most often want of a site.
constexpr std::array<std::string_view, 6> kOfUse{"apptainer", "singularity", "singularityce",
                                                 "cuda",      "ffmpeg",      "python"};
constexpr std::size_t kMostShown = 8;

/// Without what is said of it: "(default)", "(L)".
std::string bare(const std::string& line) {
  return line.substr(0, line.find('('));
}

bool is_name(const std::string& name) {
  return !name.empty() && !name.ends_with(':') && !name.ends_with('/') && !name.starts_with('-') &&
         name.find_first_of(" \t\r") == std::string::npos;
}

bool is_of_use(const std::string& name) {
  const std::string_view tool = std::string_view(name).substr(0, name.find('/'));
  return std::any_of(kOfUse.begin(), kOfUse.end(), [&](std::string_view one) {
    return std::equal(tool.begin(), tool.end(), one.begin(), one.end(), [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
  });
}

}  // namespace

Result<Survey> survey_site(const Scheduler& scheduler, Transport& transport, Deadline deadline) {
  const auto* surveyor = dynamic_cast<const Surveyor*>(&scheduler);
  const auto command =
      guarded("scheduler", [&] { return surveyor ? surveyor->survey() : scheduler.probe(); });
  if (!command) return command.error();
  const auto output = guarded("transport", [&] { return transport.run(*command, deadline); });
  if (!output) return output.error();
  return guarded("scheduler", [&]() -> Result<Survey> {
    if (surveyor) return surveyor->read_survey(*output);
    auto offers = scheduler.read_probe(*output);
    if (!offers) return offers.error();
    return survey_of(*offers);
  });
}

Survey survey_of(const std::vector<Offer>& offers) {
  Survey survey;
  for (const Offer& offer : offers) {
    SurveyedPartition partition;
    partition.name = offer.partition;
    partition.walltime = offer.walltime;
    partition.kinds.push_back({offer.nodes, offer.cpus, offer.memory, offer.gpus});
    survey.partitions.push_back(std::move(partition));
  }
  return survey;
}

std::vector<SiteCheck> check_shapes(const Site& site, const Survey& survey) {
  std::vector<SiteCheck> checks;
  for (const Shape& shape : site.shapes) checks.push_back(check_shape(shape, survey));
  return checks;
}

SiteReport check_site(const Site& site, const PilotProgram& program, const Scheduler& scheduler,
                      Transport& transport, Transport& streams, Deadline deadline) {
  SiteReport report;
  const std::string folder = site.workspace + "/check";
  SiteCheck trust = check_trust(site, transport, sooner(deadline, kTrustLimit));
  const auto put =
      trust.ok ? guarded("transport",
                         [&] {
                           return write_files(
                               transport, {{folder + "/written", "hpcbatch\n", 0600}}, deadline);
                         })
               : Result<void>(
                     Error{Error::Kind::Rejected, "nothing is put where others could change it"});
  report.checks.push_back(
      {"workspace", put.has_value(), put ? site.workspace + " can be written" : put.error().text});
  report.checks.push_back(std::move(trust));
  auto survey = survey_site(scheduler, transport, sooner(deadline, kSurveyLimit));
  report.checks.push_back({"batch system", survey.has_value(),
                           survey ? site.scheduler + " answers" : survey.error().text});
  if (survey) {
    for (SiteCheck& check : check_shapes(site, *survey)) report.checks.push_back(std::move(check));
    report.survey = std::move(*survey);
    for (SiteCheck& check :
         put ? try_shapes(site, scheduler, transport, folder, sooner(deadline, kTrialLimit))
             : std::vector<SiteCheck>()) {
      report.checks.push_back(std::move(check));
    }
  }
  const auto output = guarded(
      "transport", [&] { return transport.run(list_modules(), sooner(deadline, kModulesLimit)); });
  // A site may do without them, but not without saying so.
  const auto modules = output ? read_modules(*output) : std::nullopt;
  report.checks.push_back(
      {"modules", modules.has_value(), output ? show_modules(modules) : output.error().text});
  if (!put) return report;
  const auto ways = link_ways(site);
  const bool is_here =
      site.scheduler == "local" || (ways.size() == 1 && ways.front() == LinkKind::Unix);
  if (!is_here) check_ways(site, program, folder, transport, streams, deadline, report.checks);
  (void)guarded("transport", [&] { return remove_files(transport, {folder}, deadline); });
  return report;
}

CommandLine list_modules() {
  return {.argv = {"sh", "-c", kScript}, .environment = {}, .input = {}};
}

std::optional<Modules> read_modules(const CommandOutput& output) {
  if (output.timed_out) return std::nullopt;
  std::istringstream lines(output.standard_output);
  std::string line;
  while (std::getline(lines, line) && line != "hbbegin") {
    if (line == "hbnone") return Modules{};
  }
  Modules modules{.has_command = true};
  while (std::getline(lines, line)) {
    if (line == "hbend") return modules;
    std::string name = bare(line);
    if (is_name(name) &&
        std::find(modules.names.begin(), modules.names.end(), name) == modules.names.end())
      modules.names.push_back(std::move(name));
  }
  return std::nullopt;
}

std::string show_modules(const std::optional<Modules>& modules) {
  if (!modules) return "could not be listed; try 'module avail' there";
  if (!modules->has_command) return "none: a batch script there has no command 'module'";
  if (modules->names.empty()) return "none: 'module avail' names none";
  std::vector<std::string> shown;
  for (const bool of_use : {true, false}) {
    for (const std::string& name : modules->names) {
      if (is_of_use(name) == of_use && shown.size() < kMostShown) shown.push_back(name);
    }
  }
  return fmt::format("{}: {}{}; what tasks need is loaded in `setup`, as in 'module load {}'",
                     modules->names.size(), fmt::join(shown, ", "),
                     shown.size() < modules->names.size() ? ", ..." : "", shown.front());
}

}  // namespace hpcbatch
