#include "runtime/pilot_program.hpp"

#include "runtime/workspace_guard.hpp"
#include "wire/file.hpp"
#include "wire/key.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace hpcbatch {
namespace {

std::string name_of_content(const std::string& program) {
  std::ifstream in(program, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return "hpcbatch-pilot-" + wire::fingerprint(bytes);
}

/// The file system on which the workspace was; empty: nobody knows.
std::string remembered(const std::string& memory, const std::string& workspace) {
  const auto text = wire::read_file(memory, wire::Readers::OwnerOnly);
  if (!text) return {};
  const std::size_t end = text->find('\n');
  return text->substr(std::min(end, text->size() - 1) + 1) == workspace + "\n" ? text->substr(0, end)
                                                                               : std::string();
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
  const std::string before = memory_.empty() ? std::string() : remembered(memory_, workspace);
  if (const auto refusal = finding ? refusal_of_bare(*finding, before, workspace) : std::nullopt)
    return Error{Error::Kind::Transient, *refusal};
  const auto there = transport.list(workspace + "/bin", deadline);
  if (!there) return there.error();
  const bool is_there = std::find(there->begin(), there->end(), name_) != there->end();
  if (!is_there) {
    if (auto put = transport.put({{file_, path_in(workspace), 0700}}, deadline); !put) return put;
  }
  if (finding && !memory_.empty() && finding->file_system != before)
    remember(finding->file_system, workspace);
  return {};
}

/// A line with the file system, one with the workspace.
void PilotProgram::remember(const std::string& file_system, const std::string& workspace) const {
  const auto written = wire::replace_file(memory_, file_system + "\n" + workspace + "\n",
                                          wire::Readers::OwnerOnly);
  if (!written) spdlog::warn("{}", written.error().text);
}

}  // namespace hpcbatch
