#include "sites/pilot_program.hpp"

#include "sites/workspace_guard.hpp"
#include "sites/workspace_memory.hpp"
#include "wire/key.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

std::string name_of_content(const std::string& name, const std::string& program) {
  std::ostringstream bytes;
  bytes << std::ifstream(program, std::ios::binary).rdbuf();
  return name + wire::fingerprint(bytes.view());
}

}  // namespace

PilotProgram::PilotProgram(std::string file, std::string memory, std::string gpu_helper)
    : file_(std::move(file)),
      memory_(std::move(memory)),
      name_(name_of_content("hpcbatch-pilot-", file_)),
      gpu_helper_(std::move(gpu_helper)) {
  if (!gpu_helper_.empty()) gpu_helper_name_ = name_of_content("hpcbatch-gpu-", gpu_helper_);
}

std::string PilotProgram::gpu_helper_in(const std::string& workspace) const {
  return gpu_helper_name_.empty() ? std::string() : workspace + "/bin/" + gpu_helper_name_;
}

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
  std::vector<Copy> missing;
  const auto add = [&](const std::string& file, const std::string& name) {
    if (std::find(there->begin(), there->end(), name) == there->end())
      missing.push_back({file, workspace + "/bin/" + name, 0700});
  };
  add(file_, name_);
  if (!gpu_helper_name_.empty()) add(gpu_helper_, gpu_helper_name_);
  if (!missing.empty()) {
    if (auto put = transport.put(missing, deadline); !put) return put;
  }
  if (finding && !memory_.empty() && finding->file_system != before)
    remember_file_system(memory_, workspace, finding->file_system);
  return {};
}

}  // namespace hpcbatch
