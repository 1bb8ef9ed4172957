#include "pilot/processes/contained.hpp"

#include "pilot/processes/mount_points.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kInside = "/.hpcbatch-inside";

bool can_be_bound(const std::string& path) {
  return path.find_first_of(":,") == std::string::npos;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

Image look_at_image(const std::string& text, const std::string& directory) {
  PathFacts facts;
  const std::string path = text.starts_with('/') ? text : directory + "/" + text;
  if (is_path_of_image(text) && is_folder(path)) {
    facts.is_folder = true;
    facts.is_layout = is_there(path + "/oci-layout");
  }
  return image_of(text, directory, facts);
}

std::optional<Refusal> trouble_with(const Image& image) {
  const std::string path = path_of(image);
  if (path.empty() || ::access(path.c_str(), R_OK) == 0) return std::nullopt;
  return Refusal{Failure::ContainerMissing,
                 "cannot read the image " + path + ": " + std::strerror(errno)};
}

/// Each folder once, then what the task asks for, then its inputs: files alone, for a folder of
/// this node would hide what the image has in its place.  An input whose name cannot be said is
/// shown where the runtime shows it anyway.
std::vector<Bind> binds_of(const wire::Start& start, const ContainerView& view) {
  std::vector<std::string> folders{view.directory};
  const auto add = [&folders](const std::string& path) {
    if (!path.empty() && std::find(folders.begin(), folders.end(), path) == folders.end())
      folders.push_back(path);
  };
  for (const std::string& folder : view.folders) add(folder);
  add(view.temporary);
  std::vector<Bind> binds;
  binds.reserve(folders.size());
  for (const std::string& folder : folders) binds.push_back({folder, folder});
  for (const wire::Bind& bind : start.container_terms().binds())
    binds.push_back({bind.from(), bind.to(), bind.read_only()});
  for (const std::string& input : start.inputs()) {
    if (can_be_bound(input)) binds.push_back({input, input, true});
  }
  return binds;
}

std::optional<Refusal> trouble_with(const std::vector<Bind>& binds) {
  for (const Bind& bind : binds) {
    for (const std::string& path : {bind.from, bind.to}) {
      if (!can_be_bound(path)) {
        return Refusal{
            Failure::ContainerFailed,
            path + " cannot be shown to a container: its runtime takes no path with ':' or ','"};
      }
    }
    if (!is_there(bind.from)) {
      return Refusal{Failure::ContainerFailed,
                     "cannot show " + bind.from + " to a container: " + std::strerror(errno)};
    }
  }
  return std::nullopt;
}

SoftAndHard at_most(std::uint64_t most, const rlimit& limit) {
  return {std::min<std::uint64_t>(limit.rlim_cur, most),
          std::min<std::uint64_t>(limit.rlim_max, most)};
}

rlimit own_open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

rlimit own_processes() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  return limit;
}

/// Podman lowers its own limit to this.
std::uint64_t most_processes() {
  std::uint64_t most = 32768;
  std::ifstream("/proc/sys/kernel/pid_max") >> most;
  return most;
}

mode_t own_umask() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

void take_terms(const wire::Start& start, const ContainerView& view, ContainerPlan& plan) {
  const wire::Container& terms = start.container_terms();
  plan.has_network = !terms.no_network();
  plan.keeps_entrypoint = terms.keeps_entrypoint();
  for (const wire::Variable& variable : terms.variables())
    plan.variables[variable.name()] = variable.value();
  const bool has_gpus = terms.has_gpus() ? terms.gpus() : view.has_gpus;
  plan.gpus = has_gpus ? view.maker : GpuMaker::None;
}

ContainerWish wish_of(const wire::Container& terms) {
  return {
      .runtime = terms.runtime(),
      .no_network = terms.no_network(),
      .keeps_entrypoint = terms.keeps_entrypoint(),
      .has_read_only_binds = std::any_of(terms.binds().begin(), terms.binds().end(),
                                         [](const wire::Bind& bind) { return bind.read_only(); })};
}

/// What Charliecloud shows of the node in any case, and what lies in a folder that is shown.
void leave_out_what_is_shown(std::vector<Bind>& binds) {
  std::vector<std::string> shown{"/tmp"};
  std::vector<Bind> kept;
  for (Bind& bind : binds) {
    const bool is_shown = bind.from == bind.to &&
                          std::any_of(shown.begin(), shown.end(), [&](const std::string& folder) {
                            return bind.to.starts_with(folder + "/");
                          });
    if (is_shown) continue;
    if (bind.from == bind.to && is_folder(bind.from)) shown.push_back(bind.to);
    kept.push_back(std::move(bind));
  }
  binds = std::move(kept);
}

}  // namespace

std::vector<FoundRuntime> runtimes_on(const std::string& search) {
  std::vector<FoundRuntime> found;
  for (const Runtime runtime : ContainerRule().order) {
    for (const std::string& path : candidates(program_of(runtime), search.c_str())) {
      if (::access(path.c_str(), X_OK) != 0 || is_folder(path)) continue;
      found.push_back({runtime, path});
      break;
    }
  }
  return found;
}

std::variant<ContainerPlan, Refusal> plan_container(const wire::Start& start,
                                                    const ContainerView& view,
                                                    const ContainerGround& ground) {
  ContainerPlan plan;
  plan.image = look_at_image(start.container(), view.directory);
  // Of what is not there no runtime need say that it runs no such images.
  if (auto refusal = trouble_with(plan.image)) return *refusal;
  auto choice = choose_runtime(plan.image, wish_of(start.container_terms()), ground.rule,
                               runtimes_on(ground.search));
  if (const auto* why = std::get_if<std::string>(&choice))
    return Refusal{Failure::ContainerMissing, *why + "; its PATH is " + ground.search};
  plan.runtime = std::get<FoundRuntime>(choice);
  plan.name = "hpcbatch-" + attempt_directory(start.attempt());
  plan.directory = view.directory;
  plan.temporary = view.temporary;
  plan.binds = binds_of(start, view);
  if (auto refusal = trouble_with(plan.binds)) return *refusal;
  take_terms(start, view, plan);
  if (!plan.keeps_entrypoint) {
    plan.inside = kInside;
    plan.report = report_file(view.temporary);
    plan.binds.push_back({ground.program, kInside, true});
  }
  if (plan.runtime.runtime == Runtime::Charliecloud) leave_out_what_is_shown(plan.binds);
  if (plan.runtime.runtime == Runtime::Charliecloud && plan.image.kind == ImageKind::Tree) {
    if (auto refusal = complete_tree(plan)) return *refusal;
  }
  plan.umask = start.has_umask() ? start.umask() : own_umask();
  plan.open_files = at_most(RLIM_INFINITY, ground.open_files.value_or(own_open_files()));
  plan.processes = at_most(most_processes(), own_processes());
  plan.user = ::geteuid();
  plan.group = ::getegid();
  return plan;
}

/// Charliecloud alone shows nothing where the image has nothing in its place.
std::optional<Refusal> complete_tree(ContainerPlan& plan) {
  const std::string& tree = plan.prepared.empty() ? plan.image.place : plan.prepared;
  plan.has_environment_file = is_there(tree + "/ch/environment");
  for (const Bind& bind : plan.binds) {
    if (make_mount_point(tree, bind.to, is_folder(bind.from))) continue;
    return Refusal{Failure::ContainerFailed, "the image " + tree + " has no " + bind.to +
                                                 " at which to show " + bind.from +
                                                 ", and none can be made: " + std::strerror(errno)};
  }
  return std::nullopt;
}

std::string report_file(const std::string& temporary) {
  return temporary + "/.hpcbatch-inside";
}

}  // namespace hpcbatch::pilot
