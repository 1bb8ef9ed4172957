#include "pilot/nodes/task_nodes.hpp"

#include "wire/whole_file.hpp"

#include <hpcbatch/text.hpp>

#include <cerrno>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kList = "/nodes";
constexpr const char* kHostFile = "/hosts";         // of OpenMPI: NAME slots=N
constexpr const char* kHydraFile = "/hosts.hydra";  // of MPICH and Intel: NAME:N
constexpr const char* kNodeFile = "/nodefile";      // of PBS: a line for each process
constexpr const char* kRun = "/node-run";
constexpr const char* kRsh = "/node-rsh";

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(by), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string cannot(const std::string& what) {
  return "cannot make " + what + ": " + std::strerror(errno);
}

/// Slurm's way to say it: 4(x2),3.
std::string in_runs(const TaskNodes& nodes, const auto& number_of) {
  std::string text;
  for (std::size_t at = 0; at < nodes.nodes.size();) {
    std::size_t end = at + 1;
    while (end < nodes.nodes.size() && number_of(nodes.nodes[end]) == number_of(nodes.nodes[at]))
      ++end;
    if (!text.empty()) text += ",";
    text += std::to_string(number_of(nodes.nodes[at]));
    if (end - at > 1) text.append("(x").append(std::to_string(end - at)).append(")");
    at = end;
  }
  return text;
}

}  // namespace

std::string nodes_folder(const std::string& work, const std::string& allocation,
                         const wire::Start& start, const std::string& attempt) {
  return work + "/" + allocation + "." + std::to_string(start.nodes(0).rank()) + ".nodes-" +
         attempt;
}

std::uint32_t TaskNodes::slots() const {
  return std::accumulate(nodes.begin(), nodes.end(), 0U,
                         [](std::uint32_t sum, const TaskNode& node) { return sum + node.slots; });
}

TaskNodes nodes_of(const wire::Start& start, const std::string& allocation, std::uint32_t cpus) {
  TaskNodes all{allocation, {}};
  const auto count = static_cast<std::uint32_t>(start.nodes_size());
  for (std::uint32_t at = 0; at < count; ++at) {
    const wire::NodeOfTask& node = start.nodes(static_cast<int>(at));
    // What does not divide goes to the first of them, as with Slurm's block distribution.
    const std::uint32_t slots =
        start.ntasks() == 0 ? cpus : start.ntasks() / count + (at < start.ntasks() % count ? 1 : 0);
    all.nodes.push_back({node.rank(), slots, node.name()});
  }
  return all;
}

std::string make_nodes_folder(const std::string& folder) {
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST ? "" : cannot(folder);
}

std::string make_nodes_folder(const std::string& folder, const TaskNodes& nodes,
                              const std::string& program) {
  if (std::string why = make_nodes_folder(folder); !why.empty()) return why;
  std::string list = nodes.allocation + "\n";
  std::string hosts;
  std::string hydra;
  std::string lines;
  for (const TaskNode& node : nodes.nodes) {
    const std::string slots = std::to_string(node.slots);
    list.append(std::to_string(node.rank)).append(" ").append(slots).append(" ");
    list.append(node.name).append("\n");
    if (node.slots == 0) continue;
    hosts.append(node.name).append(" slots=").append(slots).append("\n");
    hydra.append(node.name).append(":").append(slots).append("\n");
    for (std::uint32_t i = 0; i < node.slots; ++i) lines.append(node.name).append("\n");
  }
  for (const auto& [name, text] : {std::pair{kHostFile, &hosts}, std::pair{kHydraFile, &hydra},
                                   std::pair{kNodeFile, &lines}, std::pair{kList, &list}}) {
    const auto written = wire::replace_file(folder + name, *text, wire::Readers::OwnerOnly, false);
    if (!written) return written.error().text;
  }
  for (const char* name : {kRun, kRsh}) {
    if (::symlink(program.c_str(), (folder + name).c_str()) != 0 && errno != EEXIST)
      return cannot(folder + name);
  }
  return {};
}

std::map<std::string, std::string> nodes_variables(const std::string& folder,
                                                   const TaskNodes& nodes, std::uint32_t cpus) {
  const std::string names = joined(nodes.nodes, ",", &TaskNode::name);
  const std::string count = std::to_string(nodes.nodes.size());
  const std::string slots = std::to_string(nodes.slots());
  const std::string rsh = folder + kRsh;
  std::map<std::string, std::string> variables{
      {kNodesFolder, folder},
      {kNodeIndex, "0"},
      {"HPCBATCH_NODES", names},
      {"HPCBATCH_NODE_RUN", folder + kRun},
      {"SLURM_JOB_NODELIST", names},
      {"SLURM_NODELIST", names},
      {"SLURM_NNODES", count},
      {"SLURM_JOB_NUM_NODES", count},
      {"SLURM_NTASKS", slots},
      {"SLURM_NPROCS", slots},
      {"SLURM_TASKS_PER_NODE", in_runs(nodes, [](const TaskNode& node) { return node.slots; })},
      {"SLURM_JOB_CPUS_PER_NODE", in_runs(nodes, [&](const TaskNode&) { return cpus; })},
      {"SLURM_CPUS_ON_NODE", std::to_string(cpus)},
      {"SLURM_NODEID", "0"},
      {"PBS_NODEFILE", folder + kNodeFile},
      // OpenMPI 4, then PRRTE, which is what OpenMPI 5 starts with.
      {"OMPI_MCA_plm", "rsh"},
      {"OMPI_MCA_plm_rsh_agent", rsh},
      {"OMPI_MCA_ras", "^slurm,tm"},
      {"OMPI_MCA_orte_default_hostfile", folder + kHostFile},
      {"PRTE_MCA_plm", "ssh"},
      {"PRTE_MCA_plm_ssh_agent", rsh},
      {"PRTE_MCA_ras", "^slurm,pbs"},
      {"PRTE_MCA_prte_default_hostfile", folder + kHostFile},
      {"HYDRA_LAUNCHER", "rsh"},
      {"HYDRA_LAUNCHER_EXEC", rsh},
      {"HYDRA_RMK", "user"},
      {"HYDRA_HOST_FILE", folder + kHydraFile},
      // Else it would give ranks on all nodes the first one's TMPDIR and GPUs.
      {"HYDRA_ENV", "none"},
      {"I_MPI_HYDRA_BOOTSTRAP", "rsh"},
      {"I_MPI_HYDRA_BOOTSTRAP_EXEC", rsh},
      {"I_MPI_HYDRA_RMK", "user"},
      {"I_MPI_HYDRA_HOST_FILE", folder + kHydraFile},
      // The pilots bind, each to cpus of its own node.  A launcher would bind the ranks of all nodes
      // by what its own one has, and tasks that are not bound all to a node's first cpus.
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"PRTE_MCA_hwloc_default_binding_policy", "none"},
      {"I_MPI_PIN", "0"},
  };
  return variables;
}

hpcbatch::Result<TaskNodes> read_nodes(const std::string& folder) {
  const auto text = wire::read_file(folder + kList, wire::Readers::OwnerOnly);
  if (!text) return text.error();
  TaskNodes all;
  for (const std::string_view line : split(*text, '\n')) {
    if (all.allocation.empty()) {
      all.allocation = line;
      continue;
    }
    const std::vector<std::string_view> words = split(line, ' ');
    const bool is_complete = words.size() == 3;
    const auto rank = number_in<std::uint32_t>(is_complete ? words[0] : "");
    const auto slots = number_in<std::uint32_t>(is_complete ? words[1] : "");
    if (!rank || !slots)
      return Error{Error::Kind::Rejected, folder + kList + ": expected lines RANK PROCESSES NAME"};
    all.nodes.push_back({*rank, *slots, std::string(words[2])});
  }
  if (all.nodes.empty()) return Error{Error::Kind::Rejected, folder + kList + ": it names no node"};
  return all;
}

int code_of_no_start(int error) {
  constexpr int kNotExecutable = 126;
  constexpr int kNotFound = 127;
  return error == ENOENT ? kNotFound : kNotExecutable;
}

std::string member_file(const std::string& folder, std::uint32_t rank) {
  return folder + "/member." + std::to_string(rank);
}

std::string to_text(const MemberPlace& place) {
  std::string text = "key " + wire::to_hex(place.key) + "\n";
  for (const wire::Address& address : place.addresses)
    text.append("address ").append(wire::to_text(address)).append("\n");
  return text;
}

std::optional<MemberPlace> parse_member_place(std::string_view text) {
  constexpr std::string_view kKey = "key ";
  constexpr std::string_view kAddress = "address ";
  MemberPlace place;
  bool has_key = false;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(kKey)) {
      const auto key = wire::key_from_hex(line.substr(kKey.size()));
      if (!key) return std::nullopt;
      place.key = *key;
      has_key = true;
      continue;
    }
    const auto address = line.starts_with(kAddress)
                             ? wire::parse_address(line.substr(kAddress.size()))
                             : std::nullopt;
    if (!address || address->kind != wire::Address::Kind::Tcp) return std::nullopt;
    place.addresses.push_back(*address);
  }
  if (!has_key || place.addresses.empty()) return std::nullopt;
  return place;
}

}  // namespace hpcbatch::pilot
