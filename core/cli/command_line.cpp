#include "cli/command_line.hpp"

#include "cli/parse/parse.hpp"
#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/split/split_tasks.hpp"
#include "cli/top/top.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/view.hpp"
#include "model/check.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <unistd.h>

namespace hpcbatch {
namespace {

int do_verb(const Command& command, const Session& session) {
  return match(
      command, [](const ShowText&) { return kExitDone; },
      [](const ShowVersion&) { return kExitDone; }, [](const EngineOptions&) { return kExitDone; },
      [](const FsckOptions&) { return kExitDone; },
      [](const SitesAddOptions&) { return kExitDone; },
      [&](const RunCommand& c) { return run_task(c, session); },
      [&](const SplitCommand& c) { return split_data_set(c, session); },
      [&](const SubmitCommand& c) { return submit_tasks(c, session); },
      [&](const WaitCommand& c) { return wait_for_tasks(c, session); },
      [&](const ChangeCommand& c) { return change_tasks(c, session); },
      [&](const NodeRunCommand& c) { return no_nodes_here(c, session); },
      [&](const TimeLeftCommand& c) { return show_time_left(c, session); },
      [&](const ListCommand& c) { return list_tasks(c, session); },
      [&](const ShowCommand& c) { return show_task(c, session); },
      [&](const LogCommand& c) { return show_log(c, session); },
      [&](const ExplainCommand& c) { return explain_task(c, session); },
      [&](const InventoryCommand& c) { return show_inventory(c, session); },
      [&](const EngineStartCommand& c) { return start_engine(c, session); },
      [&](const EngineStopCommand& c) { return stop_engine(c, session); },
      [&](const EngineReloadCommand& c) { return reload_engine(c, session); },
      [&](const EngineStatusCommand& c) { return show_engine(c, session); },
      [&](const DoctorCommand& c) { return check_installation(c, session); },
      [&](const ReportCommand& c) { return report_usage(c, session); },
      [&](const WaitsCommand& c) { return show_waits(c, session); },
      [&](const KeepCommand& c) { return keep_pilots(c, session); },
      [&](const SimCommand& c) { return replay_trace(c, session); },
      [&](const NewToolCommand& c) { return start_tool(c, session); },
      [&](const PluginCommand& c) { return care_for_plugins(c, session); },
      [&](const TrainCommand& c) { return train_waits(c, session); },
      [&](const TopCommand& c) { return show_top(c, session); },
      [&](const BatchCommandsCommand& c) { return make_batch_commands(c, session); },
      [&](const MetricsCommand& c) { return print_metrics(c, session); },
      [&](const WebCommand& c) { return open_page(c, session); },
      [&](const BackupCommand& c) { return back_up(c, session); },
      [&](const DropboxCommand& c) { return watch_dropbox(c, session); });
}

int do_command(const Command& command, const Mains& mains) {
  if (const auto* text = std::get_if<ShowText>(&command)) {
    std::fputs(text->text.c_str(), stdout);
    return kExitDone;
  }
  if (std::holds_alternative<ShowVersion>(command)) {
    std::fputs(mains.version().c_str(), stdout);
    return kExitDone;
  }
  // The engine has signals of its own.
  if (const auto* options = std::get_if<EngineOptions>(&command)) return mains.engine(*options);
  if (const auto* options = std::get_if<FsckOptions>(&command)) return mains.fsck(*options);
  if (const auto* options = std::get_if<SitesAddOptions>(&command))
    return mains.sites_add(*options);

  const auto places = find_places(own_environment());
  if (!places) throw CommandError(kExitUsage, places.error().text);
  Interrupt interrupt;
  try {
    return do_verb(command, {*places, interrupt});
  } catch (const InterruptedByUser&) {
    // Taken off: it would end us once it is let through again.
    const int number = interrupt.take();
    return number == 0 ? kExitInterrupted : 128 + number;
  }
}

int complain(const std::string& text, int exit_code) {
  std::fflush(stdout);
  say(text);
  return exit_code;
}

}  // namespace

int run_command_line(int argc, char** argv, const Mains& mains) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const bool is_run = !words.empty() && words[0] == "run";
  const bool asks_for_help = words.size() > 1 && (words[1] == "--help" || words[1] == "-h");
  if (!words.empty() && words[0] == "node-run" && !asks_for_help) become_node_run(words);
  try {
    const int exit_code = do_command(parse_command(words), mains);
    // What an earlier piece met is only remembered.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return complain("cannot write to standard output", kExitUsage);
    return exit_code;
  } catch (const CommandError& error) {
    return complain(error.what(), is_run ? kExitOwnFailure : error.exit_code());
  } catch (const DocumentError& error) {
    return complain(error.what(), is_run ? kExitOwnFailure : kExitUsage);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(),
                    is_run ? kExitOwnFailure : kExitUsage);
  }
}

}  // namespace hpcbatch
