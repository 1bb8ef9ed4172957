// One function per verb; each returns the exit code and throws CommandError or InterruptedByUser.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"
#include "cli/process/process.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

int perform(const RunCommand& command, const Session& session);
int perform(const SubmitCommand& command, const Session& session);
int perform(const WaitCommand& command, const Session& session);
int perform(const ChangeCommand& command, const Session& session);
int perform(const NodeRunCommand& command, const Session& session);
int perform(const TimeLeftCommand& command, const Session& session);
int perform(const ListCommand& command, const Session& session);
int perform(const ShowCommand& command, const Session& session);
int perform(const LogCommand& command, const Session& session);
int perform(const ExplainCommand& command, const Session& session);
int perform(const InventoryCommand& command, const Session& session);
int perform(const EngineStartCommand& command, const Session& session);
int perform(const EngineStopCommand& command, const Session& session);
int perform(const EngineReloadCommand& command, const Session& session);
int perform(const EngineStatusCommand& command, const Session& session);
int perform(const DoctorCommand& command, const Session& session);
int perform(const ReportCommand& command, const Session& session);
int perform(const WaitsCommand& command, const Session& session);
int perform(const KeepCommand& command, const Session& session);
int perform(const SimCommand& command, const Session& session);
int perform(const NewToolCommand& command, const Session& session);
int perform(const PluginCommand& command, const Session& session);
int perform(const TrainCommand& command, const Session& session);
int perform(const DropboxCommand& command, const Session& session);
int perform(const BatchCommandsCommand& command, const Session& session);
int perform(const MetricsCommand& command, const Session& session);
int perform(const WebCommand& command, const Session& session);
int perform(const BackupCommand& command, const Session& session);

/// In place of this process, where it is inside a task over several nodes; else it returns.
void become_node_run(const std::vector<std::string>& words);

// Verbs that hand over to a program that is a part of an installation beside `hpcbatch` itself:
// `plugin`, `web` and `waits train`.

// Programs that are a part of an installation beside `hpcbatch` itself.

/// Becomes that program, with these words behind its name; it hears signals as we did before.
/// Throws CommandError (2) where it is not there.
[[noreturn]] void become_part(const std::string& name, std::vector<std::string> words,
                              const Interrupt& interrupt);

}  // namespace hpcbatch
