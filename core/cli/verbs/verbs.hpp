// One function per verb; each returns the exit code and throws CommandError or InterruptedByUser.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"
#include "cli/process/process.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

int run_task(const RunCommand& command, const Session& session);
int submit_tasks(const SubmitCommand& command, const Session& session);
int wait_for_tasks(const WaitCommand& command, const Session& session);
int change_tasks(const ChangeCommand& command, const Session& session);
/// In place of this process, where it is inside a task over several nodes; else it returns.
void become_node_run(const std::vector<std::string>& words);
int no_nodes_here(const NodeRunCommand& command, const Session& session);
int show_time_left(const TimeLeftCommand& command, const Session& session);
int list_tasks(const ListCommand& command, const Session& session);
int show_task(const ShowCommand& command, const Session& session);
int show_log(const LogCommand& command, const Session& session);
int explain_task(const ExplainCommand& command, const Session& session);
int show_inventory(const InventoryCommand& command, const Session& session);
int start_engine(const EngineStartCommand& command, const Session& session);
int stop_engine(const EngineStopCommand& command, const Session& session);
int reload_engine(const EngineReloadCommand& command, const Session& session);
int show_engine(const EngineStatusCommand& command, const Session& session);
int check_installation(const DoctorCommand& command, const Session& session);
int report_usage(const ReportCommand& command, const Session& session);
int show_waits(const WaitsCommand& command, const Session& session);
int keep_pilots(const KeepCommand& command, const Session& session);
int replay_trace(const SimCommand& command, const Session& session);
int start_tool(const NewToolCommand& command, const Session& session);
int care_for_plugins(const PluginCommand& command, const Session& session);
int train_waits(const TrainCommand& command, const Session& session);
int watch_dropbox(const DropboxCommand& command, const Session& session);
int make_batch_commands(const BatchCommandsCommand& command, const Session& session);
int print_metrics(const MetricsCommand& command, const Session& session);
int open_page(const WebCommand& command, const Session& session);
int back_up(const BackupCommand& command, const Session& session);

// Verbs that hand over to a program that is a part of an installation beside `hpcbatch` itself:
// `plugin`, `web` and `waits train`.

// Programs that are a part of an installation beside `hpcbatch` itself.

/// Becomes that program, with these words behind its name; it hears signals as we did before.
/// Throws CommandError (2) where it is not there.
[[noreturn]] void become_part(const std::string& name, std::vector<std::string> words,
                              const Interrupt& interrupt);

}  // namespace hpcbatch
