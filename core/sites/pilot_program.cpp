#include "sites/pilot_program.hpp"

#include "sites/workspace_guard.hpp"
#include "sites/workspace_memory.hpp"
#include "wire/key.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace hpcbatch {
namespace {

std::string name_of_content(const std::string& program) {
  std::ostringstream bytes;
  bytes << std::ifstream(program, std::ios::binary).rdbuf();
  return "hpcbatch-pilot-" + wire::fingerprint(bytes.view());
}

}  // namespace

PilotProgram::PilotProgram(std::string file, std::string memory)
    : file_(std::move(file)), memory_(std::move(memory)), name_(name_of_content(file_)) {}

std::string PilotProgram::path_in(const std::string& workspace) const {
  return workspace + "/bin/" + name_;
}

Result<void> PilotProgram::deliver(Transport& transport, const std::string& workspace,
                                   Deadline deadline) const {
  const std::unique_lock turn(*delivering_, deadline);
  if (!turn)
    return Error{Error::Kind::Transient, "the pilot program is still being put into " + workspace};
  const auto looked = transport.run(look_at_workspace(workspace), deadline);
  if (!looked) return looked.error();
  const auto finding = read_workspace(*looked);
  if (finding && !finding->others.empty())
    return Error{Error::Kind::Rejected, refusal_of(*finding)};
  if (finding && !finding->group.empty())
    spdlog::warn(
        "the group of {} can write the workspace of {} and have its programs run as you; "
        "'chmod g-w' it",
        finding->group, workspace);
  const std::string before =
      memory_.empty() ? std::string() : remembered_file_system(memory_, workspace);
  if (const auto refusal = finding ? refusal_of_bare(*finding, before, workspace) : std::nullopt)
    return Error{Error::Kind::Transient, *refusal};
  const auto there = transport.list(workspace + "/bin", deadline);
  if (!there) return there.error();
  const bool is_there = std::find(there->begin(), there->end(), name_) != there->end();
  if (!is_there) {
    if (auto put = transport.put({{file_, path_in(workspace), 0700}}, deadline); !put) return put;
  }
  if (finding && !memory_.empty() && finding->file_system != before)
    remember_file_system(memory_, workspace, finding->file_system);
  return {};
}

}  // namespace hpcbatch
