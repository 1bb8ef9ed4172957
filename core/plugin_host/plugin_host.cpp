#include "plugin_host/plugin_host.hpp"

#include "plugin_host/guarded.hpp"

#include "documents/texts.hpp"
#include "hpcbatch/plugin.hpp"
#include "plugin_host/search_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kLongestFingerprint = 400;

Error refused(const std::filesystem::path& file, std::string_view why) {
  return {Error::Kind::Rejected, fmt::format("plugin {} is refused: {}", file.string(), why)};
}

Result<const hpcbatch_plugin_descriptor*> open_checked(const std::filesystem::path& file) {
  if (auto why = untrusted_plugin(file)) return Error{Error::Kind::Rejected, *why};
  auto opened = open_library(file);
  if (!opened) return opened;
  const hpcbatch_plugin_descriptor& d = **opened;
  if (d.magic != HPCBATCH_ABI_MAGIC) {
    return refused(
        file, "its hpcbatch_plugin is no descriptor of ours; build it with hpcbatch_add_plugin");
  }
  if (d.abi_major != HPCBATCH_ABI_MAJOR || d.abi_minor > HPCBATCH_ABI_MINOR) {
    return refused(
        file,
        fmt::format("it was built for plugin ABI {}.{}, this engine speaks {}.{}; build it again "
                    "with this engine's SDK",
                    d.abi_major, d.abi_minor, HPCBATCH_ABI_MAJOR, HPCBATCH_ABI_MINOR));
  }
  if (d.size != sizeof d) {
    return refused(
        file,
        fmt::format("its descriptor has {} bytes instead of {}; build it again with this engine's "
                    "SDK",
                    d.size, sizeof d));
  }
  if (d.name == nullptr || d.version == nullptr || d.fingerprint == nullptr ||
      d.create == nullptr) {
    return refused(file, "its descriptor has empty fields; use the macros of the SDK");
  }
  if (std::string_view(d.fingerprint) != HPCBATCH_FINGERPRINT) {
    return refused(
        file,
        fmt::format("it was built with '{}', this engine with '{}'; build it with the same options",
                    show_text(d.fingerprint, kLongestFingerprint), HPCBATCH_FINGERPRINT));
  }
  if (file.stem() != d.name) {
    const std::string name = show_text(d.name);
    return refused(file, fmt::format("it calls itself '{}'; rename the file to {}.so", name, name));
  }
  return opened;
}

}  // namespace

Result<PluginFacts> PluginHost::check(const std::filesystem::path& file) {
  auto opened = open_checked(file);
  if (!opened) return opened.error();
  const hpcbatch_plugin_descriptor& d = **opened;
  return PluginFacts{.path = file,
                     .kind = static_cast<hpcbatch_plugin_kind>(d.kind),
                     .name = d.name,
                     .version = show_text(d.version),
                     .fingerprint = show_text(d.fingerprint, kLongestFingerprint)};
}

Result<void*> PluginHost::create(hpcbatch_plugin_kind kind, const std::string& name,
                                 const std::string& config_yaml) const {
  const auto plugins = available(kind);
  const PluginFile* found = nullptr;
  std::vector<std::string> names;
  for (const auto& plugin : plugins) {
    names.push_back(plugin.name);
    if (plugin.name == name) found = &plugin;
  }
  if (found == nullptr) {
    std::vector<std::string> looked;
    for (const auto& directory : search_) looked.push_back((directory / folder_of(kind)).string());
    const std::string nearest = nearest_spelling(name, names);
    return Error{
        Error::Kind::Rejected,
        fmt::format("there is no {} plugin '{}'{}; there are: {} (looked in {})", kind_name(kind),
                    name, nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                    names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                    fmt::join(looked, ", "))};
  }
  auto opened = open_checked(found->path);
  if (!opened) return opened.error();
  const hpcbatch_plugin_descriptor& d = **opened;
  // `create` returns void*: only this comparison makes the cast to the interface right.
  if (d.kind != static_cast<std::uint32_t>(kind)) {
    return refused(found->path,
                   fmt::format("it is a plugin of kind {}, not {}; put it into another directory",
                               kind_name(d.kind), kind_name(kind)));
  }
  const std::string doing = fmt::format("making an object of plugin {}", name);
  const Doing named(doing, Doing::Code::Plugin);
  std::array<char, 1024> reason{};
  void* object =
      d.create(config_yaml.c_str(), reason.data(), static_cast<std::uint32_t>(reason.size()));
  if (object == nullptr) {
    reason.back() = '\0';
    return Error{Error::Kind::Rejected,
                 fmt::format("plugin {}: {}", name,
                             reason.front() != '\0' ? reason.data()
                                                    : "it made no object and did not say why")};
  }
  return object;
}

}  // namespace hpcbatch
