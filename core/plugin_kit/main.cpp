// The program `hpcbatch-plugin`: for those who write plugins.  `hpcbatch plugin` reads the command
// line and runs it.
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "documents/configuration.hpp"
#include "documents/state_paths.hpp"
#include "documents/yaml.hpp"
#include "plugin_host/search_path.hpp"
#include "plugin_kit/plugin_verbs.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <unistd.h>

namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
using namespace hpcbatch;

constexpr std::size_t kLargestConfig = std::size_t{1} << 20U;

fs::path own_prefix() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path();
}

int list(bool as_json) {
  const char* environment = std::getenv("HPCBATCH_PLUGIN_PATH");
  const auto places = find_places(own_environment());
  const auto found = plugin_kit::list_plugins(plugin_search_path(
      places ? configured_plugin_path(*places) : std::vector<std::string>{},
      environment != nullptr ? environment : "", own_prefix() / "bin" / "hpcbatch"));
  if (as_json)
    print_json(found);
  else
    print(plugin_kit::list_text(found));
  return kExitDone;
}

int start_project(const json::object& asked) {
  const plugin_kit::NewProject project{text_at(asked, "kind"), text_at(asked, "name"),
                                       text_at(asked, "directory")};
  const auto files =
      plugin_kit::write_project(project, own_prefix() / "share/hpcbatch/plugin-kit", own_prefix());
  if (asked.at("json").as_bool()) {
    json::array names;
    for (const fs::path& file : files) names.emplace_back(file.string());
    print_json({{"directory", project.directory.string()}, {"files", std::move(names)}});
    return kExitDone;
  }
  for (const fs::path& file : files) std::printf("%s\n", file.c_str());
  std::printf("now: cd %s, and do what its README.md says\n", project.directory.c_str());
  return kExitDone;
}

int check(const json::object& asked) {
  const std::string config = text_at(asked, "config");
  plugin_kit::CheckAsked wanted{.file = fs::absolute(text_at(asked, "file")).lexically_normal(),
                                .config = {},
                                .config_file = {},
                                .directory = text_at(asked, "directory")};
  if (!config.empty()) {
    wanted.config = read_text(config, kLargestConfig);
    wanted.config_file = fs::absolute(config).lexically_normal().string();
  }
  if (asked.at("json").as_bool()) {
    plugin_kit::HeardTogether together;
    const std::string against =
        plugin_kit::check_plugin(wanted, [&](const json::object& heard) { together.add(heard); });
    json::object all = together.take();
    all["good"] = against.empty();
    if (!against.empty()) all["error"] = against;
    print_json(all);
    return against.empty() ? kExitDone : kExitTaskFailed;
  }
  const std::string against = plugin_kit::check_plugin(wanted, plugin_kit::print_heard);
  if (against.empty()) {
    std::printf("it keeps the contract\n");
    return kExitDone;
  }
  std::fflush(stdout);
  std::fprintf(stderr, "hpcbatch: %s\n", against.c_str());
  return kExitTaskFailed;
}

int do_verb(int argc, char** argv) {
  try {
    if (argc != 2)
      throw std::invalid_argument("this program is a part of hpcbatch: say hpcbatch plugin --help");
    const json::value value = json::parse(argv[1]);
    const json::object& asked = value.as_object();
    const std::string verb = text_at(asked, "verb");
    if (verb == "list") return list(asked.at("json").as_bool());
    return verb == "new" ? start_project(asked) : check(asked);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpcbatch: %s\n", error.what());
    return kExitUsage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int code = do_verb(argc, argv);
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == kExitDone) {
    std::fprintf(stderr, "hpcbatch: cannot write the output: %s\n", std::strerror(errno));
    code = kExitUsage;
  }
  // Of a damaged plugin what runs at the end of a process may crash it, when all was said.
  std::fflush(nullptr);
  ::_exit(code);
}
