// What the pilots of a task over several nodes know of each other: one folder in the workspace, in
// which each member says where it listens, and the head what its command may read.
#pragma once

#include "wire/encrypted_link.hpp"
#include "wire/pilot_file.hpp"
#include "wire/wire.pb.h"

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// Below the folder `work` of the workspace, with the allocation's name before it as all there.
std::string nodes_folder(const std::string& work, const std::string& allocation,
                         const wire::Start& start, const std::string& attempt);

struct TaskNode {
  std::uint32_t rank{0};   ///< of its pilot
  std::uint32_t slots{1};  ///< processes that are started there
  std::string name;
};

struct TaskNodes {
  std::string allocation;
  std::vector<TaskNode> nodes;  ///< the head first
  std::uint32_t slots() const;
};

/// `cpus`: of each node, whole ones; so many processes where the task does not say how many.
TaskNodes nodes_of(const wire::Start& start, const std::string& allocation, std::uint32_t cpus);

/// Makes the folder and what is in it for the head: the list of nodes, host files, and the programs
/// `node-run` and `node-rsh`, which are the pilot's own.  What went wrong, or nothing.
std::string make_nodes_folder(const std::string& folder, const TaskNodes& nodes,
                              const std::string& program);
/// The same for a member, which needs the folder alone.
std::string make_nodes_folder(const std::string& folder);

/// What the head's command finds in its environment.
std::map<std::string, std::string> nodes_variables(const std::string& folder,
                                                   const TaskNodes& nodes, std::uint32_t cpus);

/// Of the folder that the variable of the environment names.
hpcbatch::Result<TaskNodes> read_nodes(const std::string& folder);

/// Where a member listens, and the key of whoever may speak to it.
struct MemberPlace {
  std::vector<wire::Address> addresses;
  wire::Key key{};
};
std::string member_file(const std::string& folder, std::uint32_t rank);
std::string to_text(const MemberPlace& place);
std::optional<MemberPlace> parse_member_place(std::string_view text);

inline constexpr const char* kNodesFolder = "HPCBATCH_NODES_FOLDER";
/// Which of the task's nodes this one is, from 0.
inline constexpr const char* kNodeIndex = "HPCBATCH_NODE_INDEX";

/// How a shell ends for what it could not run (POSIX, Exit Status for Commands), by errno.
int code_of_no_start(int error);

}  // namespace hpcbatch::pilot
