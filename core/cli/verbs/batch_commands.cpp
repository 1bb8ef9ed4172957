// `slurm-commands`: a folder of links to the program that speaks as Slurm's commands do.
#include "cli/process/exit.hpp"
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
#include <string>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 8> kSlurmNames{"sbatch",   "squeue", "sacct", "scancel",
                                                 "scontrol", "sinfo",  "srun",  "salloc"};

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

int make_slurm_commands(const SlurmCommandsCommand& command, const Session& /*session*/) {
  const fs::path folder(command.directory);
  const fs::path program = fs::path(own_program()).parent_path() / "hpcbatch-slurm";
  if (::access(program.c_str(), X_OK) != 0)
    throw CommandError(kExitUsage, "cannot run " + program.string() + ": " + std::strerror(errno) +
                                       "; build or install hpcbatch completely");
  std::error_code error;
  // Its folder alone: one above that is not there is mistyped.
  fs::create_directory(folder, error);
  if (error) cannot("make the folder", folder, error.message());
  // First, so that nothing takes them for those of a batch system.
  if (!std::ofstream(folder / kOwnCommandsMark)) cannot("write", folder, "permission denied");
  for (const char* name : kSlurmNames) make_link(program, folder / name);
  if (command.json) {
    boost::json::array names(kSlurmNames.begin(), kSlurmNames.end());
    print_json({{"directory", folder.string()}, {"commands", std::move(names)}});
    return kExitDone;
  }
  print(folder.string() + "\n");
  print("now: put it first in PATH: export PATH=" + folder.string() + ":\"$PATH\"\n");
  return kExitDone;
}

}  // namespace hpcbatch
