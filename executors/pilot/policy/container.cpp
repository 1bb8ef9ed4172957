#include "pilot/policy/container.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hpcbatch::pilot {
namespace {

constexpr std::array<std::string_view, 4> kImageEndings = {".sif", ".simg", ".img", ".tar"};
constexpr std::array<std::string_view, 3> kSquashEndings = {".sqfs", ".squashfs", ".sqsh"};
// Of what Apptainer alone can run.
constexpr std::array<std::string_view, 4> kItsOwn = {"library://", "oras://", "shub://",
                                                     "instance://"};
constexpr std::string_view kRegistry = "docker://";
constexpr std::string_view kLayout = "oci:";
constexpr std::array<std::string_view, 2> kArchives = {"docker-archive:", "oci-archive:"};

template <std::size_t N>
bool ends_as(std::string_view text, const std::array<std::string_view, N>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [text](std::string_view ending) { return text.ends_with(ending); });
}

std::string below(const std::string& directory, std::string_view path) {
  return path.starts_with('/') ? std::string(path) : directory + "/" + std::string(path);
}

Image image_at(std::string path, const std::string& said, const PathFacts& facts) {
  if (facts.is_layout) return {ImageKind::Layout, std::move(path), said};
  if (facts.is_folder) return {ImageKind::Tree, std::move(path), said};
  if (ends_as(path, kSquashEndings)) return {ImageKind::Squash, std::move(path), said};
  if (path.ends_with(".tar")) return {ImageKind::Archive, std::move(path), said};
  return {ImageKind::File, std::move(path), said};
}

/// Without ":tag" or "@digest" at its end.
std::string without_tag(const std::string& place) {
  const std::size_t slash = place.rfind('/');
  const std::size_t tag = place.find_first_of(":@", slash == std::string::npos ? 0 : slash);
  return place.substr(0, tag);
}

}  // namespace

bool is_path_of_image(const std::string& text) {
  if (text.find("://") != std::string::npos || text.starts_with(kLayout)) return false;
  return text.starts_with('/') || text.starts_with('.') || ends_as(text, kImageEndings) ||
         ends_as(text, kSquashEndings);
}

Image image_of(const std::string& text, const std::string& directory, const PathFacts& facts) {
  for (const std::string_view scheme : kItsOwn) {
    if (text.starts_with(scheme)) return {ImageKind::Other, text, text};
  }
  if (text.starts_with(kRegistry))
    return {ImageKind::Registry, text.substr(kRegistry.size()), text};
  if (text.starts_with(kLayout))
    return {ImageKind::Layout, below(directory, std::string_view(text).substr(kLayout.size())),
            text};
  for (const std::string_view archive : kArchives) {
    if (text.starts_with(archive))
      return {ImageKind::Archive, below(directory, std::string_view(text).substr(archive.size())),
              text};
  }
  if (is_path_of_image(text)) return image_at(below(directory, text), text, facts);
  return {ImageKind::Registry, text, text};
}

std::string path_of(const Image& image) {
  switch (image.kind) {
    case ImageKind::Registry:
    case ImageKind::Other:
      return {};
    case ImageKind::Layout:
    case ImageKind::Archive:
      return without_tag(image.place);
    case ImageKind::File:
    case ImageKind::Squash:
    case ImageKind::Tree:
      return image.place;
  }
  return {};
}

std::string with_transport(const Image& image) {
  switch (image.kind) {
    case ImageKind::Registry:
      return std::string(kRegistry) + image.place;
    case ImageKind::Layout:
      return std::string(kLayout) + image.place;
    case ImageKind::Archive: {
      const std::string_view transport =
          image.said.starts_with(kArchives[1]) ? kArchives[1] : kArchives[0];
      return std::string(transport) + image.place;
    }
    case ImageKind::File:
    case ImageKind::Squash:
    case ImageKind::Tree:
    case ImageKind::Other:
      return image.place;
  }
  return image.place;
}

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

const char* kind_in_words(ImageKind kind) {
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
  if (!runs(runtime, image.kind)) return std::string("runs no ") + kind_in_words(image.kind);
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

namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kLength = 32;
struct SaidWord {
  ContainerReport::Said said;
  std::string_view word;
};
constexpr std::array<SaidWord, 4> kSaidWords = {{{ContainerReport::Said::Begun, "begun"},
                                                 {ContainerReport::Said::CannotRun, "cannot-run"},
                                                 {ContainerReport::Said::Exited, "exited"},
                                                 {ContainerReport::Said::Signalled, "signalled"}}};

// What is true of the node, not of the image, and would break its programs.
constexpr std::array<std::string_view, 12> kOfTheNode = {"PATH",
                                                         "LD_LIBRARY_PATH",
                                                         "LD_PRELOAD",
                                                         "HOME",
                                                         "HOSTNAME",
                                                         "PWD",
                                                         "OLDPWD",
                                                         "SHLVL",
                                                         "_",
                                                         "XDG_RUNTIME_DIR",
                                                         "CONTAINER_HOST",
                                                         "DBUS_SESSION_BUS_ADDRESS"};

void add(Words& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

bool is_plain(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool is_passed(const std::string& name, const ContainerPlan& plan) {
  return is_plain(name) && !plan.variables.contains(name) &&
         std::find(kOfTheNode.begin(), kOfTheNode.end(), name) == kOfTheNode.end();
}

std::string taken(const ContainerPlan& plan, const std::string& otherwise) {
  return plan.prepared.empty() ? otherwise : plan.prepared;
}

std::string text_of(const Bind& bind) {
  return bind.from + ":" + bind.to + (bind.read_only ? ":ro" : "");
}

std::string limit_text(const char* name, const SoftAndHard& limit) {
  return std::string(name) + "=" + std::to_string(limit.soft) + ":" + std::to_string(limit.hard);
}

void add_apptainer(Words& words, const ContainerPlan& plan) {
  words.emplace_back(plan.keeps_entrypoint ? "run" : "exec");
  if (plan.gpus == GpuMaker::Nvidia) words.emplace_back("--nv");
  if (plan.gpus == GpuMaker::Amd) words.emplace_back("--rocm");
  // As somebody who is not root they can give no network but an empty one.
  if (!plan.has_network) add(words, {"--net", "--network", "none"});
  for (const Bind& bind : plan.binds)
    add(words, {"--bind", bind.from == bind.to && !bind.read_only ? bind.from : text_of(bind)});
  add(words, {"--pwd", plan.directory, taken(plan, with_transport(plan.image))});
}

/// What Podman and Docker have in common.
void add_run(Words& words, const ContainerPlan& plan, const Words& names) {
  char mask[8];
  std::snprintf(mask, sizeof mask, "%04o", plan.umask & 0777U);
  const bool is_podman = plan.runtime.runtime == Runtime::Podman;
  // Standard error is the task's: what Podman warns of there is nobody's.
  if (is_podman) add(words, {"--log-level", "fatal"});
  // Shared memory as the node has it: what they make themselves is small.
  add(words, {"run", "--rm", "-i", "--name", plan.name, "--pull", "never", "--log-driver", "none",
              "--network", plan.has_network ? "host" : "none", "--volume", "/dev/shm:/dev/shm",
              "--security-opt", "label=disable"});
  if (is_podman) {
    // In no group of its own: the pilot's holds its limits.  Its root is the user outside, whatever
    // user the image names, and needs no range of further users.
    add(words,
        {"--cgroups", "disabled", "--umask", mask, "--user", "0:0", "--ulimit",
         limit_text("nofile", plan.open_files), "--ulimit", limit_text("nproc", plan.processes)});
    if (plan.user != 0) add(words, {"--group-add", "keep-groups"});
  } else {
    add(words, {"--user", std::to_string(plan.user) + ":" + std::to_string(plan.group)});
    if (plan.memory != 0)
      add(words,
          {"--memory", std::to_string(plan.memory), "--memory-swap", std::to_string(plan.memory)});
  }
  if (plan.gpus == GpuMaker::Nvidia && is_podman) add(words, {"--device", "nvidia.com/gpu=all"});
  if (plan.gpus == GpuMaker::Nvidia && !is_podman) add(words, {"--gpus", "all"});
  if (plan.gpus == GpuMaker::Amd) add(words, {"--device", "/dev/kfd"});
  if (plan.gpus == GpuMaker::Amd || plan.gpus == GpuMaker::Intel)
    add(words, {"--device", "/dev/dri"});
  for (const std::string& name : names) {
    if (is_passed(name, plan)) add(words, {"--env", name});
  }
  for (const auto& [name, value] : plan.variables)
    add(words, {"--env", std::string(name).append("=").append(value)});
  for (const Bind& bind : plan.binds) add(words, {"--volume", text_of(bind)});
  add(words, {"--workdir", plan.directory});
  if (!plan.keeps_entrypoint) add(words, {"--entrypoint", ""});
  // A folder is shown as it is; what the task changes in it is the task's alone.
  if (plan.image.kind == ImageKind::Tree) {
    add(words, {"--rootfs", plan.image.place + ":O"});
  } else {
    words.push_back(taken(plan, is_podman ? with_transport(plan.image) : plan.image.place));
  }
}

void add_charliecloud(Words& words, const ContainerPlan& plan) {
  words.emplace_back("--env-no-expand");
  if (plan.has_environment_file) words.emplace_back("--set-env");
  add(words, {"--unset-env=LD_LIBRARY_PATH", "--unset-env=LD_PRELOAD",
              "--set-env=TMPDIR=" + plan.temporary});
  for (const auto& [name, value] : plan.variables)
    words.push_back(std::string("--set-env=").append(name).append("=").append(value));
  for (const Bind& bind : plan.binds)
    words.push_back(std::string("--bind=").append(bind.from).append(":").append(bind.to));
  add(words, {"--cd=" + plan.directory, taken(plan, plan.image.place), "--"});
}

}  // namespace

std::string to_text(const ContainerReport& report) {
  std::string text;
  for (const SaidWord& each : kSaidWords) {
    if (each.said == report.said)
      text = std::string(each.word) + " " + std::to_string(report.value);
  }
  text.resize(kLength - 1, ' ');
  return text + '\n';
}

ContainerReport container_report(const std::string& text) {
  if (text.size() != kLength) return {};
  const std::size_t blank = text.find(' ');
  for (const SaidWord& each : kSaidWords) {
    if (std::string_view(text).substr(0, blank) == each.word)
      return {each.said, std::atoi(text.c_str() + blank)};
  }
  return {};
}

std::vector<std::string> container_argv(const ContainerPlan& plan,
                                        const std::vector<std::string>& command,
                                        const std::vector<std::string>& names) {
  Words words{plan.runtime.program};
  switch (plan.runtime.runtime) {
    case Runtime::Apptainer:
    case Runtime::Singularity:
      add_apptainer(words, plan);
      break;
    case Runtime::Podman:
    case Runtime::Docker:
      add_run(words, plan, names);
      break;
    case Runtime::Charliecloud:
      add_charliecloud(words, plan);
      break;
  }
  if (!plan.keeps_entrypoint) add(words, {plan.inside, "inside", plan.report});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::map<std::string, std::string> runtime_variables(const ContainerPlan& plan) {
  std::map<std::string, std::string> variables;
  switch (plan.runtime.runtime) {
    case Runtime::Apptainer:
    case Runtime::Singularity:
      for (const auto& [name, value] : plan.variables) {
        variables["APPTAINERENV_" + name] = value;
        variables["SINGULARITYENV_" + name] = value;
      }
      break;
    case Runtime::Charliecloud:
      // It shows the container this one's folder as /tmp, below which other binds may have to lie.
      variables["TMPDIR"] = "/tmp";
      break;
    case Runtime::Podman:
    case Runtime::Docker:
      break;
  }
  return variables;
}

std::vector<std::string> removal_argv(const FoundRuntime& runtime, const std::string& name) {
  switch (runtime.runtime) {
    case Runtime::Podman:
      return {runtime.program, "rm", "--force", "--ignore", "--time", "0", name};
    case Runtime::Docker:
      return {runtime.program, "rm", "--force", name};
    case Runtime::Apptainer:
    case Runtime::Singularity:
    case Runtime::Charliecloud:
      return {};
  }
  return {};
}

}  // namespace hpcbatch::pilot
