// `slurm-commands` and `pbs-commands`: a folder of links to the program that speaks as those of the
// batch system do.
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/doctor.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/texts.hpp"
#include "hpcbatch/own_commands.hpp"

#include <boost/json/array.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 10> kSlurmNames{"sbatch",   "squeue", "sacct", "scancel",
                                                  "scontrol", "sinfo",  "srun",  "sacctmgr",
                                                  "sshare",   "salloc"};
constexpr std::array<const char*, 10> kPbsNames{"qsub",   "qstat", "qdel",   "qhold", "qrls",
                                                "qrerun", "qmove", "qalter", "qsig",  "pbsnodes"};

[[noreturn]] void cannot(const std::string& what, const fs::path& path, const std::string& why) {
  throw CommandError(kExitUsage,
                     "cannot " + what + " " + show_text(path.string(), 200) + ": " + why);
}

/// What is there and no link of ours stays.
void make_link(const fs::path& program, const fs::path& link) {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(link, error);
  if (fs::exists(there)) {
    if (!fs::is_symlink(there) || fs::read_symlink(link, error).filename() != program.filename())
      cannot("make", link,
             "it is there, and no link to " + program.filename().string() +
                 "; name a folder of its own");
    fs::remove(link, error);
  }
  fs::create_symlink(program, link, error);
  if (error) cannot("make", link, error.message());
}

}  // namespace

int perform(const BatchCommandsCommand& command, const Session& /*session*/) {
  const fs::path folder(command.directory);
  const fs::path program =
      fs::path(own_program()).parent_path() / (command.of_pbs ? "hpcbatch-pbs" : "hpcbatch-slurm");
  const std::span<const char* const> names =
      command.of_pbs ? std::span<const char* const>(kPbsNames) : kSlurmNames;
  if (::access(program.c_str(), X_OK) != 0)
    throw CommandError(kExitUsage, "cannot run " + program.string() + ": " + std::strerror(errno) +
                                       "; build or install hpcbatch completely");
  std::error_code error;
  // Its folder alone: one above that is not there is mistyped.
  fs::create_directory(folder, error);
  if (error) cannot("make the folder", folder, error.message());
  // First, so that nothing takes them for those of a batch system.
  if (!std::ofstream(folder / kOwnCommandsMark)) cannot("write", folder, "permission denied");
  for (const char* name : names) make_link(program, folder / name);
  if (command.json) {
    boost::json::array made(names.begin(), names.end());
    print_json({{"directory", folder.string()}, {"commands", std::move(made)}});
    return kExitDone;
  }
  print(folder.string() + "\n");
  print("now: put it first in PATH: export PATH=" + folder.string() + ":\"$PATH\"\n");
  return kExitDone;
}

}  // namespace hpcbatch
