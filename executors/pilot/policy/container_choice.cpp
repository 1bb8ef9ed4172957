#include "pilot/policy/container_choice.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hpcbatch::pilot {
namespace {

struct Named {
  Runtime runtime;
  const char* name;
  const char* program;
};
constexpr std::array<Named, 5> kRuntimes = {{
    {Runtime::Apptainer, "apptainer", "apptainer"},
    {Runtime::Singularity, "singularity", "singularity"},
    {Runtime::Podman, "podman", "podman"},
    {Runtime::Charliecloud, "charliecloud", "ch-run"},
    {Runtime::Docker, "docker", "docker"},
}};

const Named& named(Runtime runtime) {
  return *std::find_if(kRuntimes.begin(), kRuntimes.end(),
                       [runtime](const Named& each) { return each.runtime == runtime; });
}

const char* in_words(ImageKind kind) {
  switch (kind) {
    case ImageKind::File:
      return "image files";
    case ImageKind::Squash:
      return "SquashFS files";
    case ImageKind::Tree:
      return "folders";
    case ImageKind::Layout:
      return "OCI layouts";
    case ImageKind::Archive:
      return "archives";
    case ImageKind::Registry:
      return "images of registries";
    case ImageKind::Other:
      return "such images";
  }
  return "";
}

bool runs(Runtime runtime, ImageKind kind) {
  switch (runtime) {
    case Runtime::Apptainer:
    case Runtime::Singularity:
      return true;
    case Runtime::Podman:
      return kind == ImageKind::Tree || kind == ImageKind::Layout || kind == ImageKind::Archive ||
             kind == ImageKind::Registry;
    case Runtime::Charliecloud:
      return kind == ImageKind::Tree || kind == ImageKind::Squash || kind == ImageKind::Layout ||
             kind == ImageKind::Registry;
    case Runtime::Docker:
      return kind == ImageKind::Registry || kind == ImageKind::Archive;
  }
  return false;
}

/// Empty: it can.
std::string why_not(Runtime runtime, const Image& image, const ContainerWish& wish) {
  if (!runs(runtime, image.kind)) return std::string("runs no ") + in_words(image.kind);
  if (runtime != Runtime::Charliecloud) return {};
  if (wish.no_network) return "cannot take the network away";
  if (wish.keeps_entrypoint) return "knows no entrypoints";
  if (wish.has_read_only_binds) return "shows nothing read-only";
  return {};
}

std::string listed(const std::vector<Runtime>& runtimes) {
  std::string text;
  for (const Runtime runtime : runtimes)
    text += (text.empty() ? "" : ", ") + std::string(name_of(runtime));
  return text;
}

}  // namespace

const char* name_of(Runtime runtime) {
  return named(runtime).name;
}

const char* program_of(Runtime runtime) {
  return named(runtime).program;
}

std::optional<Runtime> runtime_named(const std::string& name) {
  for (const Named& each : kRuntimes) {
    if (name == each.name || name == each.program) return each.runtime;
  }
  return std::nullopt;
}

ContainerRule container_rule(const std::string& text) {
  ContainerRule rule;
  std::vector<Runtime> order;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" ,\t", at);
    if (begin == std::string::npos) break;
    const std::size_t end = std::min(text.find_first_of(" ,\t", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (const auto runtime = runtime_named(word)) {
      order.push_back(*runtime);
    } else if (rule.trouble.empty()) {
      rule.trouble = "HPCBATCH_CONTAINERS of this site names '" + word + "', which is none of " +
                     listed(ContainerRule().order);
    }
    at = end;
  }
  if (!order.empty()) rule.order = std::move(order);
  return rule;
}

std::variant<FoundRuntime, std::string> choose_runtime(const Image& image,
                                                       const ContainerWish& wish,
                                                       const ContainerRule& rule,
                                                       const std::vector<FoundRuntime>& found) {
  if (!rule.trouble.empty()) return rule.trouble;
  std::vector<Runtime> order = rule.order;
  if (!wish.runtime.empty()) {
    const auto wanted = runtime_named(wish.runtime);
    if (!wanted) return "there is no container runtime '" + wish.runtime + "'";
    if (std::find(order.begin(), order.end(), *wanted) == order.end())
      return "this site runs no containers with " + std::string(name_of(*wanted)) + ", only with " +
             listed(order);
    order = {*wanted};
  }
  std::string refusals;
  for (const Runtime runtime : order) {
    const auto at = std::find_if(found.begin(), found.end(), [runtime](const FoundRuntime& each) {
      return each.runtime == runtime;
    });
    if (at == found.end()) continue;
    const std::string refusal = why_not(runtime, image, wish);
    if (refusal.empty()) return *at;
    refusals += (refusals.empty() ? "" : ", ") + std::string(name_of(runtime)) + " " + refusal;
  }
  if (!refusals.empty()) return "nothing here can run the image " + image.said + ": " + refusals;
  return "this node has no container runtime (" + listed(order) + ")";
}

}  // namespace hpcbatch::pilot
