// The configuration file: sites, where plugins and tools are looked for, defaults of tools, drop
// boxes.
#pragma once

#include "documents/state_paths.hpp"
#include "documents/view.hpp"
#include "model/site.hpp"

#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

/// A folder that the engine watches for job files.
struct DropboxSettings {
  std::string directory;           ///< absolute
  std::string workspace;           ///< of the jobs' own folders; empty: the engine chooses
  std::vector<std::string> allow;  ///< destinations below these need not be the owner's; absolute
  std::vector<std::string>
      templates;  ///< folders of `NAME.template`, looked at in this order; absolute
  std::map<std::string, std::string> variables;       ///< for templates: `containers`, ...
  std::uint64_t input_limit{std::uint64_t{1} << 40};  ///< bytes of the inputs of one job
  std::uint32_t jobs_limit{1000};                     ///< of one user at once; the others wait
  std::string trust_group{};                          ///< the configuration's
  friend bool operator==(const DropboxSettings&, const DropboxSettings&) = default;
};

/// Where a site stands in the file, for messages about what is found out later (a plugin that is
/// not there).
struct SiteLines {
  int site{0};
  int scheduler{0};
  int transport{0};
  friend bool operator==(const SiteLines&, const SiteLines&) = default;
};

/// Of the engine's log: `Json` is one object a line.
enum class LogFormat { Text, Json };

struct Configuration {
  std::string file;  ///< empty: there was none
  std::vector<Site> sites;
  std::vector<SiteLines> lines;  ///< one for each site, in the same order
  std::vector<std::string> plugin_path;
  std::vector<std::string> tool_path;
  /// Defaults for parameters of tools: by tool, then by parameter.
  std::map<std::string, std::map<std::string, std::string>> tool_parameters;
  std::vector<DropboxSettings> dropboxes;
  /// A group whose members may write what the engine trusts; of sites that name none, too.
  std::string trust_group;
  LogFormat log{LogFormat::Text};
  /// Who is told of the end of what people submit and say nobody (model/notify_target.hpp).
  std::vector<std::string> notify;
};

/// Throws DocumentError, with the line and what was expected there.
Configuration parse_configuration(std::string_view text, const std::string& file);
Configuration read_configuration(const std::string& file);
/// The folders with plugins that the configuration names; none where there is no configuration.
/// Throws as these.
std::vector<std::string> configured_plugin_path(const Places& places);

/// One entry of `sites:`.  A site of scheduler `local` may leave out workspace, cpus, memory and
/// walltime of its shapes, and the shapes: whoever builds it takes the machine's.
Site parse_site(const View& view, SiteLines& lines);

// Options that a site hands to its batch system with every batch job.

/// Throws DocumentError for one that another cluster, a shape or hpcbatch itself has to do with.
void check_batch_options(const View& options, const Site& site);

}  // namespace hpcbatch
