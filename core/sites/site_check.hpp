// What `sites check` finds out of one site: whether it can be used as it is configured, what it
// offers, and by which ways its pilots could reach the engine.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/survey.hpp"
#include "hpcbatch/transport.hpp"
#include "model/site.hpp"
#include "sites/pilot_program.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// One line of `sites check`.
struct SiteCheck {
  std::string check;
  bool ok{false};
  std::string text;
};

struct SiteReport {
  std::vector<SiteCheck> checks;
  std::optional<Survey> survey;  ///< nothing where the batch system did not tell
};

/// What there is, as the batch system says it; nothing is made anywhere.  Blocks until done or
/// until `deadline`.
Result<Survey> survey_site(const Scheduler& scheduler, Transport& transport, Deadline deadline);

/// Blocks until done or until `deadline`.  `streams` is for what is carried by a stream, and not
/// used for anything else.  What is tried lies in a folder of its own in the workspace, out of the
/// way of pilots and relays that work there.
SiteReport check_site(const Site& site, const PilotProgram& program, const Scheduler& scheduler,
                      Transport& transport, Transport& streams, Deadline deadline);

/// Each shape of the site against what there is.  Pure.
std::vector<SiteCheck> check_shapes(const Site& site, const Survey& survey);

/// What a scheduler says that knows of no survey.  Pure.
Survey survey_of(const std::vector<Offer>& offers);

// The environment modules of a site, as its batch scripts find them: what may be loaded in `setup`.

/// Asks in the way in which a pilot's batch script would have `module`.
CommandLine list_modules();

/// Names such as cuda/12.2, in the order in which they were told; none at all where there is no
/// `module`; nothing where it could not be found out.  Reads `module -t avail` of Lmod and of
/// Environment Modules (their manuals, "avail").  Pure.
struct Modules {
  bool has_command{false};
  std::vector<std::string> names{};
};
std::optional<Modules> read_modules(const CommandOutput& output);

/// One sentence for a person.  Pure.
std::string show_modules(const std::optional<Modules>& modules);

}  // namespace hpcbatch
