// How a task's image is run, beside what is so in any container.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// A folder or file of the node that a container shows.
struct ContainerBind {
  std::string from, to;
  bool read_only{false};
  friend bool operator==(const ContainerBind&, const ContainerBind&) = default;
};

struct ContainerTerms {
  std::vector<ContainerBind> binds;
  bool no_network{false};
  std::optional<bool> gpus;  ///< none: where the task was granted some
  bool keeps_entrypoint{false};
  std::map<std::string, std::string> variables;  ///< over all others
  std::string runtime;                           ///< empty: as the site says
  friend bool operator==(const ContainerTerms&, const ContainerTerms&) = default;
};

/// `/data`, `/data:/mnt` or `/data:/mnt:ro`; nothing where it is none of these.
std::optional<ContainerBind> parse_container_bind(std::string_view text);

/// Takes `network`, `gpu`, `entrypoint` or `runtime`; else one sentence that goes on from the key's
/// name.
std::string take_container_word(ContainerTerms& terms, std::string_view key,
                                std::string_view value);

}  // namespace hpcbatch
