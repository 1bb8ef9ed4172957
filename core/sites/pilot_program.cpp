#include "sites/pilot_program.hpp"

#include "plugin_host/guarded.hpp"
#include "sites/workspace_files.hpp"
#include "sites/workspace_memory.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/relay.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

std::string bytes_of(const std::string& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(bytes).str();
}

std::string name_of_content(const std::string& name, const std::string& program) {
  return name + wire::fingerprint(bytes_of(program));
}

Result<void> have_program(const ExchangeTools& tools, const PilotProgram& program,
                          const std::string& workspace, Deadline deadline) {
  if (tools.program_is_there) return {};
  return guarded("transport",
                 [&] { return program.deliver(*tools.transport, workspace, deadline); });
}

}  // namespace

PilotProgram::PilotProgram(std::string file, std::string memory, std::string gpu_helper,
                           std::string trust_group)
    : file_(std::move(file)),
      memory_(std::move(memory)),
      name_(name_of_content("hpcbatch-pilot-", file_)),
      gpu_helper_(std::move(gpu_helper)),
      trust_group_(std::move(trust_group)) {
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
  const std::unique_lock turn(delivering_->turn, deadline);
  if (!turn)
    return Error{Error::Kind::Transient, "the pilot program is still being put into " + workspace};
  const auto looked = transport.run(look_at_workspace(workspace, trust_group_), deadline);
  if (!looked) return looked.error();
  const auto finding = read_workspace(*looked);
  const auto found = finding ? distrust(*finding, trust_group_) : std::nullopt;
  if (found && found->is_refusal)
    return Error{Error::Kind::Rejected,
                 "cannot use the workspace " + workspace + ": " + found->text + found->group_hint};
  if (found && found->text != delivering_->said) {
    spdlog::warn("workspace {}: {}{}", workspace, found->text, found->group_hint);
    delivering_->said = found->text;
  }
  const std::string before =
      memory_.empty() ? std::string() : remembered_file_system(memory_, workspace);
  if (const auto refusal = finding ? refusal_of_bare(*finding, before, workspace) : std::nullopt)
    return Error{Error::Kind::Transient, *refusal};
  const auto there = list_folder(transport, workspace + "/bin", deadline);
  if (!there) return there.error();
  std::vector<FileText> missing;
  const auto add = [&](const std::string& file, const std::string& name) {
    if (std::find(there->begin(), there->end(), name) != there->end()) return true;
    std::string bytes = bytes_of(file);
    // Whatever is there under the name of a content is never put there again.
    if (!name.ends_with(wire::fingerprint(bytes))) return false;
    missing.push_back({workspace + "/bin/" + name, std::move(bytes), 0700});
    return true;
  };
  for (const auto& [file, name] :
       {std::pair(&file_, &name_), std::pair(&gpu_helper_, &gpu_helper_name_)}) {
    if (!name->empty() && !add(*file, *name))
      return Error{Error::Kind::Transient,
                   fmt::format("cannot put {} into {}: it was removed or replaced since the engine "
                               "began; restart the engine",
                               *file, workspace)};
  }
  if (auto put = write_files(transport, missing, deadline); !put) return put;
  if (finding && !memory_.empty() && finding->file_system != before)
    remember_file_system(memory_, workspace, finding->file_system);
  return {};
}

Result<std::string> run_exchange(Transport& transport, const ExchangeCommand& command,
                                 const std::string& order, Deadline deadline) {
  const auto output = guarded("transport", [&] {
    return transport.run({.argv = {command.program, command.what, command.folder},
                          .environment = {},
                          .input = wire::sealed_exchange(order)},
                         deadline);
  });
  if (!output) return output.error();
  if (output->timed_out) return Error{Error::Kind::Transient, "the exchange did not end in time"};
  if (output->exit_code != 0) {
    return Error{Error::Kind::Transient,
                 fmt::format("the exchange failed (exit {}): {}", output->exit_code,
                             output->standard_error.substr(0, output->standard_error.find('\n')))};
  }
  auto text = wire::opened_exchange(output->standard_output);
  if (!text) {
    return Error{Error::Kind::Transient,
                 "the exchange's answer cannot be read: " + text.error().text};
  }
  return text;
}

Result<Fd> open_exchange(ExchangeTools& tools, const PilotProgram& program, const std::string& what,
                         const std::string& workspace, Deadline deadline) {
  if (auto there = have_program(tools, program, workspace, deadline); !there) return there.error();
  const CommandLine command{
      .argv = {program.path_in(workspace), what, workspace}, .environment = {}, .input = {}};
  const auto stream =
      guarded("transport", [&] { return tools.transport->open(command, deadline); });
  tools.program_is_there = stream.has_value();
  if (!stream) return stream.error();
  return Fd(*stream);
}

Result<std::string> run_exchange(ExchangeTools& tools, const PilotProgram& program,
                                 const std::string& what, const std::string& workspace,
                                 const std::string& order, Deadline deadline) {
  if (auto there = have_program(tools, program, workspace, deadline); !there) return there.error();
  auto report = run_exchange(*tools.transport, {program.path_in(workspace), what, workspace}, order,
                             deadline);
  // It may have been removed there.
  tools.program_is_there = report.has_value();
  return report;
}

}  // namespace hpcbatch
