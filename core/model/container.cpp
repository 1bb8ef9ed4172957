#include "model/container.hpp"

#include <algorithm>
#include <array>

namespace hpcbatch {
namespace {

constexpr std::array<std::string_view, 5> kContainerRuntimes = {"apptainer", "singularity",
                                                                "podman", "charliecloud", "docker"};

}  // namespace

std::optional<ContainerBind> parse_container_bind(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(':');
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  ContainerBind bind;
  if (parts.size() > 1 && (parts.back() == "ro" || parts.back() == "rw")) {
    bind.read_only = parts.back() == "ro";
    parts.pop_back();
  }
  if (parts.size() > 2) return std::nullopt;
  bind.from = parts.front();
  bind.to = parts.back();
  const auto is_fine = [](const std::string& path) {
    return !path.empty() && (path.front() == '/' || path.front() == '{') &&
           path.find(',') == std::string::npos;
  };
  if (!is_fine(bind.from) || !is_fine(bind.to)) return std::nullopt;
  return bind;
}

std::string take_container_word(ContainerTerms& terms, std::string_view key,
                                std::string_view value) {
  if (key == "network") {
    if (value != "none" && value != "host") return "must be host or none";
    terms.no_network = value == "none";
  } else if (key == "gpu") {
    if (value != "true" && value != "false") return "must be true or false";
    terms.gpus = value == "true";
  } else if (key == "entrypoint") {
    if (value != "keep" && value != "none") return "must be keep or none";
    terms.keeps_entrypoint = value == "keep";
  } else if (key == "runtime") {
    if (std::find(kContainerRuntimes.begin(), kContainerRuntimes.end(), value) ==
        kContainerRuntimes.end())
      return "must be apptainer, singularity, podman, charliecloud or docker";
    terms.runtime = value;
  } else {
    return "is no key of a container; it has image, binds, network, gpu, entrypoint, environment "
           "and runtime";
  }
  return {};
}

}  // namespace hpcbatch
