#include "documents/configuration.hpp"

#include "documents/texts.hpp"
#include "documents/yaml.hpp"
#include "model/notify_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include <arpa/inet.h>
#include <sys/stat.h>

namespace hpcbatch {
namespace {

constexpr std::int64_t kMostJobs = 100'000;

std::vector<std::string> paths(const std::optional<View>& view) {
  std::vector<std::string> result;
  if (!view) return result;
  for (const View& item : view->list()) result.push_back(item.absolute_path());
  return result;
}

std::vector<std::string> read_targets(const View& view) {
  std::vector<std::string> targets;
  for (const View& item : view.list()) {
    const auto parsed = parse_notify_target(item.non_empty_text());
    if (const auto* why = std::get_if<std::string>(&parsed)) item.fail(*why);
    targets.push_back(item.non_empty_text());
  }
  return targets;
}

void read_sites(const View& view, Configuration& configuration) {
  std::map<std::string, int> seen;
  for (const View& item : view.list()) {
    SiteLines lines;
    Site site = parse_site(item, lines);
    if (const auto [at, is_new] = seen.emplace(site.name, item.line()); !is_new) {
      item.fail(fmt::format("a second site is named '{}' (the first is in line {})", site.name,
                            at->second));
    }
    configuration.sites.push_back(std::move(site));
    configuration.lines.push_back(lines);
  }
}

void read_tools(const View& view, Configuration& configuration) {
  for (const View& tool : view.map().entries()) {
    MapView settings = tool.map();
    if (const auto parameters = settings.find("parameters")) {
      configuration.tool_parameters[tool.name()] = parameters->text_map();
    }
    settings.finish();
  }
}

void read_dropboxes(const View& view, Configuration& configuration) {
  std::set<std::string> seen;
  for (const View& item : view.list()) {
    MapView map = item.map();
    DropboxSettings dropbox;
    dropbox.directory = map.get("directory").absolute_path();
    if (const auto workspace = map.find("workspace"))
      dropbox.workspace = workspace->absolute_path();
    dropbox.allow = paths(map.find("allow"));
    dropbox.templates = paths(map.find("templates"));
    if (const auto variables = map.find("variables")) dropbox.variables = variables->text_map();
    if (const auto limit = map.find("input_limit")) dropbox.input_limit = limit->size();
    if (const auto limit = map.find("jobs_limit"))
      dropbox.jobs_limit = static_cast<std::uint32_t>(limit->integer(1, kMostJobs));
    map.finish();
    if (!seen.insert(dropbox.directory).second) {
      item.fail(fmt::format("the drop box {} is named twice", dropbox.directory));
    }
    configuration.dropboxes.push_back(std::move(dropbox));
  }
}

Configuration configuration_of(const Node& root, const std::string& file) {
  Configuration configuration;
  configuration.file = file;
  if (root.kind == Node::Kind::Null) return configuration;
  const View whole(root, file, "the configuration");
  MapView map = whole.map();
  if (const auto sites = map.find("sites")) read_sites(*sites, configuration);
  if (const auto group = map.find("trust_group")) {
    configuration.trust_group = group->non_empty_text();
    for (Site& site : configuration.sites)
      if (site.trust_group.empty()) site.trust_group = configuration.trust_group;
  }
  if (const auto log = map.find("log"))
    configuration.log = log->one_of({"text", "json"}) == "json" ? LogFormat::Json : LogFormat::Text;
  if (const auto notify = map.find("notify")) configuration.notify = read_targets(*notify);
  configuration.plugin_path = paths(map.find("plugin_path"));
  configuration.tool_path = paths(map.find("tool_path"));
  if (const auto tools = map.find("tools")) read_tools(*tools, configuration);
  if (const auto dropboxes = map.find("dropboxes")) read_dropboxes(*dropboxes, configuration);
  for (DropboxSettings& box : configuration.dropboxes) box.trust_group = configuration.trust_group;
  map.finish();
  return configuration;
}

}  // namespace

Configuration parse_configuration(std::string_view text, const std::string& file) {
  return configuration_of(parse_yaml(text, file), file);
}

Configuration read_configuration(const std::string& file) {
  return configuration_of(read_yaml(file), file);
}

std::vector<std::string> configured_plugin_path(const Places& places) {
  struct ::stat facts {};
  if (::lstat(places.configuration.c_str(), &facts) != 0 && errno == ENOENT) return {};
  return read_configuration(places.configuration).plugin_path;
}

// One site of the configuration, with its shapes.

namespace {

constexpr std::int64_t kMostBatchJobs = 100'000;
constexpr double kMostOfAnything = 1e9;
constexpr double kMostCost = 1e6, kLeastCost = 1e-6;
constexpr std::uint64_t kLeastStore = std::uint64_t{1} << 20;

struct PluginChoice {
  std::string name;
  std::string config;
};

/// `slurm`, or `{plugin: slurm, its: own keys}`.
PluginChoice parse_plugin(const View& view) {
  if (view.node().kind == Node::Kind::Scalar) return {view.word(), ""};
  if (view.node().kind != Node::Kind::Map) {
    view.expected("the name of a plugin, or a map with 'plugin: NAME' and the plugin's own keys");
  }
  PluginChoice choice{view.map().get("plugin").word(), ""};
  Node rest = view.node();
  std::erase_if(rest.fields, [](const Field& field) { return field.name == "plugin"; });
  if (!rest.fields.empty()) choice.config = to_yaml(rest);
  return choice;
}

std::uint32_t count(const View& view, std::int64_t least) {
  return static_cast<std::uint32_t>(view.integer(least, kMostBatchJobs));
}

Duration at_least(const View& view, Duration least, std::string_view shown) {
  const Duration value = view.duration();
  if (value < least) view.expected(fmt::format("a duration of at least {}", shown));
  return value;
}

void read_gpus(const View& view, Resources& capacity) {
  if (view.node().kind != Node::Kind::Map) {
    view.expected("a map from the kind of GPU to how many, such as {a100: 2}");
  }
  for (const View& kind : view.map().entries()) {
    if (!is_word(kind.name())) {
      kind.fail(fmt::format("a kind of GPU must be a name such as a100, not '{}'",
                            show_text(kind.name(), 40)));
    }
    capacity.set(std::string(kGpuPrefix) + kind.name(), Amount::of(kind.integer(1, 1024)));
  }
  const auto entries = view.map().entries();
  if (entries.size() < 2) return;
  for (const View& kind : entries) {
    if (kind.name() == kGpuWithoutKind)
      kind.fail(
          "'gpu' is the kind of GPUs to which the batch system gives none, and cannot stand beside "
          "others: no batch job may ask for GPUs with and without a kind; make it a shape of its "
          "own");
  }
}

void read_amounts(const View& view, Resources& capacity) {
  static constexpr std::array kKnown{kCpus, kMemory, kDisk, kAnyGpu};
  for (const View& amount : view.map().entries()) {
    const bool is_known = std::find(kKnown.begin(), kKnown.end(), amount.name()) != kKnown.end();
    if (is_known || amount.name().starts_with(kGpuPrefix)) {
      amount.fail(fmt::format(
          "'{0}' has a key of its own in a shape; write it there, not under 'resources'",
          amount.name()));
    }
    capacity.set(amount.name(), Amount::of_fraction(amount.number(0.0001, kMostOfAnything)));
  }
}

Shape parse_shape(const View& view, bool is_local) {
  MapView map = view.map();
  Shape shape;
  shape.name = map.get("name").word();
  if (const auto partition = map.find("partition")) shape.partition = partition->word();
  if (const auto nodes = map.find("nodes")) shape.nodes = count(*nodes, 1);
  if (const auto cpus = is_local ? map.find("cpus") : map.get("cpus")) {
    shape.capacity.set(kCpus, Amount::of(cpus->integer(1, 65536)));
  }
  if (const auto memory = is_local ? map.find("memory") : map.get("memory")) {
    const auto bytes = static_cast<std::int64_t>(memory->size());
    constexpr std::int64_t kLeast = std::int64_t{256} << 20;
    if (bytes < kLeast) memory->expected("a size of at least 256M (the pilot itself keeps 100M)");
    shape.capacity.set(kMemory, Amount::of(bytes));
  }
  if (const auto disk = map.find("disk")) {
    shape.capacity.set(kDisk, Amount::of(static_cast<std::int64_t>(disk->size())));
  }
  if (const auto gpus = map.find("gpus")) read_gpus(*gpus, shape.capacity);
  if (const auto resources = map.find("resources")) read_amounts(*resources, shape.capacity);
  if (const auto walltime = is_local ? map.find("walltime") : map.get("walltime")) {
    shape.walltime =
        at_least(*walltime, std::chrono::seconds{10}, "10s (a tenth of it is the pilot's margin)");
  }
  if (const auto tags = map.find("tags")) {
    for (const View& tag : tags->list()) shape.tags.push_back(tag.tag());
  }
  // So that a task can ask for a partition by its name.
  if (!shape.partition.empty()) shape.tags.push_back("partition=" + shape.partition);
  std::sort(shape.tags.begin(), shape.tags.end());
  shape.tags.erase(std::unique(shape.tags.begin(), shape.tags.end()), shape.tags.end());
  if (const auto most = map.find("max_queued")) shape.max_queued = count(*most, 1);
  if (const auto most = map.find("max_running")) shape.max_running = count(*most, 1);
  map.finish();
  return shape;
}

void read_shapes(const View& view, bool is_local, std::vector<Shape>& shapes) {
  for (const View& item : view.list()) {
    Shape shape = parse_shape(item, is_local);
    const auto is_same = [&](const Shape& other) { return other.name == shape.name; };
    if (std::any_of(shapes.begin(), shapes.end(), is_same)) {
      item.fail(fmt::format("a second shape of this site is named '{}'", shape.name));
    }
    shapes.push_back(std::move(shape));
  }
}

LinkKind parse_link(const View& view) {
  static const std::map<std::string, LinkKind> kinds{{"auto", LinkKind::Auto},
                                                     {"unix", LinkKind::Unix},
                                                     {"direct", LinkKind::Direct},
                                                     {"relay", LinkKind::Relay},
                                                     {"spool", LinkKind::Spool}};
  return kinds.at(view.one_of({"auto", "unix", "direct", "relay", "spool"}));
}

std::uint64_t parse_output_limit(const View& view) {
  if (view.node().kind == Node::Kind::Scalar && view.node().text == "none") return kNoOutputLimit;
  const std::uint64_t limit = view.size();
  if (limit < kLeastOutputLimit) view.expected("a size of at least 1K, or none");
  return limit;
}

std::string folder_of(const View& view, std::string path) {
  if (!path.starts_with('/') || path.find('\0') != std::string::npos)
    view.fail(fmt::format("'{}' is no absolute path of a folder", show_text(path)));
  path = std::filesystem::path(path).lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// `{/home: /home, /data: /gpfs/data}`: folders here and what they are called there.
PathMap parse_path_map(const View& view) {
  if (view.node().kind != Node::Kind::Map) {
    view.expected(
        "a map from folders of this machine to what the site calls them, such as {/home: /home}");
  }
  PathMap map;
  for (const View& folder : view.map().entries())
    map.push_back({folder_of(folder, std::string(folder.name())), folder.absolute_path()});
  for (SharedFolder& folder : map) {
    folder.there = std::filesystem::path(folder.there).lexically_normal().string();
    if (folder.there.size() > 1 && folder.there.ends_with('/')) folder.there.pop_back();
  }
  return map;
}

std::string numeric_address(const View& view) {
  std::string text = view.text();
  std::array<unsigned char, sizeof(in6_addr)> buffer{};
  if (::inet_pton(AF_INET, text.c_str(), buffer.data()) != 1 &&
      ::inet_pton(AF_INET6, text.c_str(), buffer.data()) != 1) {
    view.expected("a numeric address of this machine, such as 10.0.0.5");
  }
  return text;
}

/// By key the values, none for `any`.
std::map<std::string, std::vector<std::string>> parse_choices(const View& view) {
  std::map<std::string, std::vector<std::string>> choices;
  if (view.node().kind != Node::Kind::Map)
    view.expected(
        "a map from what tasks may choose to its values or 'any', such as {account: any}");
  for (const View& choice : view.map().entries()) {
    std::vector<std::string> values;
    if (choice.node().kind == Node::Kind::List) {
      values = choice.texts();
      if (values.empty()) choice.expected("values; leave it out where none may be chosen");
      for (const View& value : choice.list())
        if (value.text() == "any") value.expected("a value; 'any' stands by itself, not in a list");
    } else if (const std::string value = choice.text(); value != "any") {
      values.push_back(value);
    }
    choices.emplace(choice.name(), std::move(values));
  }
  return choices;
}

/// Of what the workspace holds and keeps.
void read_limits(MapView& map, Site& site) {
  using namespace std::chrono_literals;
  if (const auto store = map.find("store")) {
    site.store_limit = store->size();
    if (site.store_limit < kLeastStore) store->expected("a size of at least 1M");
  }
  if (const auto keep = map.find("keep_for")) site.keep_for = at_least(*keep, 1h, "1h");
  if (const auto keep = map.find("keep_limit")) site.keep_limit = keep->size();
  if (const auto limit = map.find("output_limit")) site.output_limit = parse_output_limit(*limit);
}

void read_gpu_keys(MapView& map, Site& site) {
  if (const auto sharing = map.find("gpu_sharing"))
    site.shares_gpus_by_mps = sharing->one_of({"time", "mps"}) == "mps";
  if (const auto test = map.find("gpu_test")) {
    site.gpu_test = test->non_empty_text();
    if (site.gpu_test.find('\n') != std::string::npos)
      test->expected("one line; a longer test is a script of its own");
  }
}

/// Each of its batch jobs would have all that the machine has: one of a shape at once, unless its
/// author says that they share it.
void share_one_machine(MapView& map, bool is_local, Site& site) {
  if (!is_local || map.find("max_running")) return;
  if (site.shapes.empty()) site.max_running = 1;
  for (Shape& shape : site.shapes)
    if (shape.max_running == 0) shape.max_running = 1;
}

/// How pilots reach the engine.
void read_ways_of_pilots(MapView& map, Site& site) {
  if (const auto link = map.find("link")) site.link = parse_link(*link);
  if (const auto interface = map.find("interface")) site.interface = numeric_address(*interface);
  if (const auto interface = map.find("relay_interface"))
    site.relay_interface = numeric_address(*interface);
}

}  // namespace

Site parse_site(const View& view, SiteLines& lines) {
  using namespace std::chrono_literals;
  MapView map = view.map();
  Site site;
  site.name = map.get("name").word();
  lines.site = view.line();

  const View scheduler = map.get("scheduler");
  lines.scheduler = scheduler.line();
  PluginChoice plugin = parse_plugin(scheduler);
  const bool is_local = plugin.name == "local";
  site.scheduler = std::move(plugin.name);
  site.scheduler_config = std::move(plugin.config);

  site.transport = "shared_fs";
  lines.transport = view.line();
  if (const auto transport = map.find("transport")) {
    lines.transport = transport->line();
    plugin = parse_plugin(*transport);
    site.transport = std::move(plugin.name);
    site.transport_config = std::move(plugin.config);
  }

  read_ways_of_pilots(map, site);
  if (const auto workspace = is_local ? map.find("workspace") : map.get("workspace")) {
    site.workspace = workspace->absolute_path();
  }
  if (const auto group = map.find("trust_group")) site.trust_group = group->non_empty_text();
  read_limits(map, site);
  if (const auto scratch = map.find("scratch")) site.scratch = scratch->absolute_path();
  read_gpu_keys(map, site);
  // By a login alone nothing is known of what both machines see.
  if (site.transport != "shared_fs") site.path_map.clear();
  if (const auto shared = map.find("path_map")) site.path_map = parse_path_map(*shared);
  if (const auto setup = map.find("setup")) site.setup = setup->texts();
  const auto options = map.find("options");
  if (options) site.options = options->texts();
  if (const auto choices = map.find("choices")) site.choices = parse_choices(*choices);
  if (const auto most = map.find("max_queued")) site.max_queued = count(*most, 1);
  if (const auto most = map.find("max_running")) site.max_running = count(*most, 1);
  if (const auto mode = map.find("estimate"))
    site.estimate = *parse_estimate_mode(mode->one_of({"off", "advise", "use"}));
  if (const auto look = map.find("look_at_queue")) site.look_at_queue = look->boolean();
  if (const auto retrain = map.find("retrain_waits")) site.retrains = retrain->boolean();
  if (const auto memory = map.find("ask_memory")) site.asks_for_memory = memory->boolean();
  if (const auto cost = map.find("waiting_cost")) site.waiting_cost = cost->number(0, kMostCost);
  if (const auto cost = map.find("idle_cost")) site.idle_cost = cost->number(kLeastCost, kMostCost);
  if (const auto idle = map.find("idle_after")) site.idle_after = at_least(*idle, 0s, "0s");
  if (const auto poll = map.find("poll_every")) site.poll_every = at_least(*poll, 100ms, "100ms");
  // What this machine's own processes are is known at once.
  if (is_local && site.transport == "shared_fs") site.settle_after = kSettleAfterHere;
  if (const auto settle = map.find("settle_after")) site.settle_after = at_least(*settle, 0s, "0s");
  if (const auto lost = map.find("lost_after")) site.lost_after = at_least(*lost, 1s, "1s");
  if (const auto shapes = map.find("shapes")) read_shapes(*shapes, is_local, site.shapes);
  share_one_machine(map, is_local, site);
  if (options) check_batch_options(*options, site);
  map.finish();
  return site;
}

namespace {

/// Only sbatch would go there: the batch job would be looked for, and cancelled, on this one.
void refuse_other_cluster(const View& view, const std::string& option) {
  if (!option.starts_with("-M") && option != "--clusters" && !option.starts_with("--clusters="))
    return;
  view.fail(
      fmt::format("'{}' cannot be used: batch jobs are listed and cancelled on the default cluster "
                  "alone; run hpcbatch on a login node of that cluster",
                  option));
}

struct OfShapes {
  std::string_view scheduler, option, key;
};
/// What a shape says itself, in options of batch jobs (sbatch(1), qsub(1B)); those that end with a
/// sign may have their value behind it.
constexpr std::array kOfShapes{OfShapes{"slurm", "-t", "walltime"},
                               OfShapes{"slurm", "--time", "walltime"},
                               OfShapes{"slurm", "-c", "cpus"},
                               OfShapes{"slurm", "--cpus-per-task", "cpus"},
                               OfShapes{"slurm", "--mem", "memory"},
                               OfShapes{"slurm", "--mem-per-cpu", "memory"},
                               OfShapes{"slurm", "-N", "nodes"},
                               OfShapes{"slurm", "--nodes", "nodes"},
                               OfShapes{"slurm", "-n", "nodes"},
                               OfShapes{"slurm", "--ntasks", "nodes"},
                               OfShapes{"slurm", "-G", "gpus"},
                               OfShapes{"slurm", "--gpus", "gpus"},
                               OfShapes{"slurm", "--gpus-per-node", "gpus"},
                               OfShapes{"slurm", "--gpus-per-task", "gpus"},
                               OfShapes{"slurm", "--gpus-per-socket", "gpus"},
                               OfShapes{"slurm", "--cpus-per-gpu", "cpus"},
                               OfShapes{"slurm", "--mem-per-gpu", "memory"},
                               OfShapes{"slurm", "--ntasks-per-node", "nodes"},
                               OfShapes{"slurm", "--ntasks-per-gpu", "nodes"},
                               OfShapes{"slurm", "-p", "partition"},
                               OfShapes{"slurm", "--partition", "partition"},
                               OfShapes{"slurm", "-a", ""},
                               OfShapes{"slurm", "--array", ""},
                               OfShapes{"slurm", "-J", ""},
                               OfShapes{"slurm", "--job-name", ""},
                               OfShapes{"slurm", "-o", ""},
                               OfShapes{"slurm", "--output", ""},
                               OfShapes{"slurm", "-e", ""},
                               OfShapes{"slurm", "--error", ""},
                               OfShapes{"slurm", "-D", ""},
                               OfShapes{"slurm", "--chdir", ""},
                               OfShapes{"slurm", "--wrap", ""},
                               OfShapes{"pbs", "-l walltime", "walltime"},
                               OfShapes{"pbs", "-l select", "cpus"},
                               OfShapes{"pbs", "-l nodes", "nodes"},
                               OfShapes{"pbs", "-l ncpus", "cpus"},
                               OfShapes{"pbs", "-l mem", "memory"},
                               OfShapes{"pbs", "-q", "partition"},
                               OfShapes{"pbs", "-N", ""},
                               OfShapes{"pbs", "-J", ""},
                               OfShapes{"pbs", "-t", ""},
                               OfShapes{"pbs", "-o", ""},
                               OfShapes{"pbs", "-e", ""}};

/// `--time 1h`, `--time=1h`, `-t1h`, and of PBS `-lwalltime=1:00:00`.
bool is_option(std::string_view text, std::string_view option) {
  if (option.starts_with("-l ") && text.starts_with("-l") && !text.starts_with("-l "))
    return is_option("-l " + std::string(text.substr(2)), option);
  if (!text.starts_with(option)) return false;
  const std::string_view rest = text.substr(option.size());
  const bool is_short = option.size() == 2;
  return rest.empty() || rest.front() == '=' || rest.front() == ' ' || is_short;
}

/// `--gres=gpu:2` beside a shape's `gpu:a100:2` is what sbatch refuses: with and without a kind.
bool says_gpus(std::string_view option) {
  constexpr std::string_view kGres = "--gres";
  if (!option.starts_with(kGres) || option.size() <= kGres.size()) return false;
  const std::string_view said = option.substr(kGres.size() + 1);
  return said.starts_with("gpu") || said.find(",gpu") != std::string_view::npos;
}

/// An option of all batch jobs that says what each shape says, or what is ours.
void refuse_contradiction(const View& view, const Site& site, const std::string& option) {
  if (site.scheduler == "slurm" && says_gpus(option))
    view.fail(fmt::format("'{}' contradicts the shapes, which say it with 'gpus'", option));
  for (const OfShapes& one : kOfShapes) {
    if (one.scheduler != site.scheduler || !is_option(option, one.option)) continue;
    if (one.key.empty()) {
      view.fail(
          fmt::format("'{}' cannot be used: hpcbatch says that itself of each batch job", option));
    }
    // Shapes without a partition are those of the default one, or of what stands here.
    if (one.key == "partition" &&
        std::all_of(site.shapes.begin(), site.shapes.end(),
                    [](const Shape& shape) { return shape.partition.empty(); }))
      continue;
    view.fail(fmt::format("'{}' contradicts the shapes, which say it with '{}'", option, one.key));
  }
}

}  // namespace

void check_batch_options(const View& options, const Site& site) {
  // An option's value may be an entry of its own.
  std::string before;
  for (const View& option : options.list()) {
    std::string text = option.non_empty_text();
    if (site.scheduler == "slurm") refuse_other_cluster(option, text);
    const bool is_value = !text.starts_with('-');
    if (is_value) text.insert(0, before + " ");
    refuse_contradiction(option, site, text);
    before = is_value ? std::string() : text;
  }
}

}  // namespace hpcbatch
