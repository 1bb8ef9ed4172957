#include "daemon/programs.hpp"

#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "documents/configuration.hpp"
#include "documents/site_proposal.hpp"
#include "documents/state_paths.hpp"
#include "documents/yaml.hpp"
#include "hpcbatch/own_commands.hpp"
#include "plugin_host/plugin_host.hpp"
#include "plugin_host/search_path.hpp"
#include "sites/site_check.hpp"
#include "staging/stage_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kSurveyTime{2};

[[noreturn]] void give_up(const std::string& sentence) {
  throw CommandError(kExitUsage, sentence);
}

bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && !has_own_commands(folder) &&
        ::access((fs::path(folder) / program).c_str(), X_OK) == 0)
      return true;
  }
  return false;
}

/// SLURM has a qsub, too.
std::string scheduler_of(const SitesAddOptions& options) {
  if (!options.scheduler.empty()) return options.scheduler;
  if (!options.host.empty())
    give_up("which batch system has " + options.host + "? Say --scheduler slurm or pbs");
  if (is_on_path("sbatch")) return "slurm";
  if (is_on_path("qsub")) return "pbs";
  give_up(
      "there is neither sbatch nor qsub on PATH; say --host LOGIN for a cluster elsewhere, or "
      "--scheduler NAME");
}

std::string text_of(const std::string& file) {
  std::error_code error;
  if (fs::symlink_status(file, error).type() == fs::file_type::not_found) return "";
  std::ifstream in(file);
  if (!in) give_up("cannot read " + file + ": " + std::strerror(errno));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// What the user has said of it, as the configuration has it.
Site site_said(const SitesAddOptions& options) {
  Node entry{.kind = Node::Kind::Map};
  const auto scalar = [](const std::string& text) {
    Node node{.kind = Node::Kind::Scalar};
    node.text = text;
    return node;
  };
  const auto put = [&](Node& map, const std::string& name, Node value) {
    map.fields.push_back({name, 1, std::move(value)});
  };
  put(entry, "name", scalar(options.name));
  put(entry, "scheduler", scalar(scheduler_of(options)));
  if (!options.host.empty()) {
    Node transport{.kind = Node::Kind::Map};
    put(transport, "plugin", scalar(options.transport));
    put(transport, "host", scalar(options.host));
    if (!options.user.empty()) put(transport, "user", scalar(options.user));
    put(entry, "transport", std::move(transport));
  }
  put(entry, "workspace", scalar(options.workspace));
  Node list{.kind = Node::Kind::List};
  list.items.push_back(std::move(entry));
  Node whole{.kind = Node::Kind::Map};
  put(whole, "sites", std::move(list));
  return parse_configuration(to_yaml(whole), "the options").sites.front();
}

Survey survey_of(const Site& site, const Configuration& configuration) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const char* search = std::getenv("HPCBATCH_PLUGIN_PATH");
  const PluginHost plugins(
      plugin_search_path(configuration.plugin_path, search == nullptr ? "" : search, program));
  const auto scheduler = plugins.scheduler(site.scheduler, site.scheduler_config);
  if (!scheduler) give_up(scheduler.error().text);
  const auto transport = plugins.transport(site.transport, site.transport_config);
  if (!transport) give_up(transport.error().text);
  std::fputs("asking the batch system...\n", stderr);
  auto survey =
      survey_site(**scheduler, **transport, std::chrono::steady_clock::now() + kSurveyTime);
  if (!survey) give_up("cannot ask the batch system: " + survey.error().text);
  return std::move(*survey);
}

bool is_wanted(const std::string& file) {
  std::fflush(stdout);
  std::fprintf(stderr, "add this to %s? [y/N] ", file.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// A link leads to what is written.
void write_to(const std::string& file, const std::string& text) {
  std::error_code error;
  const fs::path target = fs::exists(file, error) ? fs::canonical(file, error) : fs::path(file);
  struct stat before {};
  const bool was_there = ::stat(target.c_str(), &before) == 0;
  if (const auto trouble =
          write_whole_file(target, text, was_there ? before.st_mode & 07777 : 0644))
    give_up("cannot write " + file + ": " + trouble->text);
}

}  // namespace

int run_sites_add(const SitesAddOptions& options) {
  const auto places = find_places(own_environment());
  if (!places) give_up(places.error().text);
  const std::string file = options.config.empty() ? places->configuration : options.config;
  const std::string before = text_of(file);
  const Configuration configuration = parse_configuration(before, file);
  const auto is_same = [&](const Site& site) { return site.name == options.name; };
  if (std::any_of(configuration.sites.begin(), configuration.sites.end(), is_same))
    give_up(file + " has a site '" + options.name + "'; choose another name");
  const Site site = site_said(options);
  const SiteProposal proposal = propose_site(site, survey_of(site, configuration));
  for (const std::string& note : proposal.notes)
    std::fprintf(stderr, "hpcbatch: %s\n", one_line(note).c_str());
  if (proposal.yaml.empty()) give_up("nothing can be proposed for " + options.name);
  std::fputs(proposal.yaml.c_str(), stdout);
  if (configuration.sites.empty())
    std::fprintf(
        stderr,
        "hpcbatch: with this entry tasks no longer run on this machine, whose site 'local' "
        "is there only where no site is configured; to keep it, add to `sites:` "
        "- {name: local, scheduler: local}\n");
  const auto after = with_site(before, proposal.yaml);
  if (!after) give_up("the sites of " + file + " stand on one line; add the entry above by hand");
  if (parse_configuration(*after, file).sites.size() != configuration.sites.size() + 1)
    give_up("the entry cannot be added to " + file + "; add it by hand");
  if (!options.yes && ::isatty(STDIN_FILENO) == 0) {
    std::fprintf(stderr, "not written to %s, because nobody can be asked: say --yes\n",
                 file.c_str());
    return kExitTaskFailed;
  }
  if (!options.yes && !is_wanted(file)) return kExitTaskFailed;
  write_to(file, *after);
  std::fprintf(stderr,
               "written to %s; `hpcbatch engine reload` takes it over, `hpcbatch sites check %s` "
               "tries it\n",
               file.c_str(), options.name.c_str());
  return kExitDone;
}

}  // namespace hpcbatch
