// The verbs about sites, allocations, pilots, tools and the engine itself.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"

#include <fmt/format.h>
#include <CLI/Validators.hpp>

#include <algorithm>

namespace hpcbatch::detail {
namespace {

constexpr const char* kWhichConfig =
    "this configuration ($HPCBATCH_CONFIG, else ~/.config/hpcbatch/config.yaml)";
constexpr const char* kNameInList = "its name, as the list shows it";

using Kind = InventoryCommand::Kind;
using Act = InventoryCommand::Act;

/// `sites show NAME` and others of one thing.
void add_act(CLI::App& things, Command& into, Kind kind, Act act, const char* name,
             const char* says, const char* footer = nullptr) {
  const std::string example = "\n  hpcbatch " + things.get_name() + " " + name + " NAME";
  add_verb<InventoryCommand>(
      things, into, name, says,
      footer != nullptr ? footer : "Examples:" + example + example + " --json",
      [&](Verb& verb, InventoryCommand& made) {
        made.kind = kind;
        made.act = act;
        verb.option("NAME", "", made.name, kNameInList).required();
        if (kind == Kind::Sites && act == Act::Check) {
          verb.flag("--gpu", made.gpus,
                    "instead send a task to each shape with GPUs: what its pilot finds of them")
              .value("--timeout", "DURATION", made.gpus_within, seconds_of,
                     "with --gpu: wait so long for pilots (10m)");
        }
        if (act == Act::Clean) verb.flag("--dry-run", made.dry_run, "only say what would go");
        verb.json(made.json);
      });
}

CLI::App& add_inventory(CLI::App& app, Command& into, Kind kind, const std::string& name,
                        const char* says, const char* what_check_does) {
  const bool can_check = what_check_does != nullptr;
  CLI::App& verb = add_verb<InventoryCommand>(app, into, name, says,
                                              "Examples:\n  hpcbatch " + name + "\n  hpcbatch " +
                                                  name + (can_check ? " check NAME" : " show NAME"),
                                              [kind](Verb& list, InventoryCommand& made) {
                                                made.kind = kind;
                                                list.json(made.json);
                                              });
  verb.require_subcommand(0, 1);
  add_act(verb, into, kind, Act::Show, "show", "one of them in full");
  if (can_check) add_act(verb, into, kind, Act::Check, "check", what_check_does);
  return verb;
}

std::string checked_absolute(const std::string& text) {
  if (!text.starts_with('/')) throw std::invalid_argument("'" + text + "' is not absolute");
  return text;
}

void add_sites_add(CLI::App& sites, Command& into) {
  add_verb<SitesAddOptions>(
      sites, into, "add",
      "ask a batch system what it has, show an entry for the configuration with shapes and limits, "
      "and write it when you say yes",
      "Examples:\n  hpcbatch sites add cluster --workspace /scratch/me/hpcbatch\n"
      "  hpcbatch sites add far --host login.example.org --scheduler pbs \\\n"
      "      --workspace /scratch/me/hpcbatch",
      [](Verb& verb, SitesAddOptions& made) {
        made.transport = "ssh";
        verb.option("NAME", "", made.name, "a name for it")
            .required()
            .value("--workspace", "DIR", made.workspace, checked_absolute,
                   "a folder that login node and compute nodes see; nothing is made there yet")
            .required()
            .option("--scheduler", "NAME", made.scheduler,
                    "slurm or pbs (what is found on this machine)")
            .option("--host", "HOST", made.host, "the login node, by ssh (this machine)")
            .option("--user", "NAME", made.user, "who logs in there (you)")
            .option("--transport", "NAME", made.transport,
                    "ssh, or openssh where ssh has to be configured (ssh)")
            .path("--config", "FILE", made.config, kWhichConfig)
            .flag("--yes", made.yes, "write without asking");
      });
}

std::string one_of(const std::string& text, const std::vector<std::string>& known,
                   const std::string& what) {
  if (std::find(known.begin(), known.end(), text) == known.end())
    throw std::invalid_argument("'" + text + "' is none of " + what + spelling_hint(text, known));
  return text;
}

std::string checked_by(const std::string& text) {
  return one_of(text, {"kind", "site", "client", "day"}, "what reports are by");
}

std::string checked_log(const std::string& text) {
  return one_of(text, {"text", "json"}, "the formats of the log");
}

void add_engine(CLI::App& app, Command& into) {
  CLI::App& engine = *app.add_subcommand("engine", "start, stop and look at the engine");
  engine.require_subcommand(1);
  engine.footer("Examples:\n  hpcbatch engine status\n  hpcbatch engine start");
  add_verb<EngineStartCommand>(
      engine, into, "start", "start the engine in the background, if none runs",
      "Examples:\n  hpcbatch engine start\n  hpcbatch engine start --config mine.yaml",
      [](Verb& verb, EngineStartCommand& made) {
        verb.path("--config", "FILE", made.config, kWhichConfig)
            .flag("--until-idle", made.until_idle,
                  "one that ends itself after 30 minutes without work")
            .json(made.json);
      });
  add_verb<EngineStopCommand>(
      engine, into, "stop", "stop the engine; pilots and tasks go on and are found again",
      "Examples:\n  hpcbatch engine stop\n  hpcbatch engine stop --drain",
      [](Verb& verb, EngineStopCommand& made) {
        verb.flag("--drain", made.drain, "first wait for what runs")
            .flag("--now", made.now, "cancel all tasks, also what waits or is held, and all pilots")
            .excludes("--drain");
      });
  for (const bool or_start : {false, true}) {
    const std::string name = or_start ? "restart" : "reload";
    add_verb<EngineReloadCommand>(
        engine, into, name,
        or_start ? "a new engine in place of the one that runs, if any; pilots and tasks go on"
                 : "take a changed configuration over, if it is good; pilots and tasks go on",
        fmt::format("Examples:\n  hpcbatch engine {0}\n  hpcbatch engine {0} --json", name),
        [or_start](Verb& verb, EngineReloadCommand& made) {
          made.or_start = or_start;
          verb.json(made.json);
        });
  }
  add_verb<EngineStatusCommand>(
      engine, into, "status", "whether an engine runs, and what it has (exit 3: none runs)",
      "Examples:\n  hpcbatch engine status\n  hpcbatch engine status --json",
      [](Verb& verb, EngineStatusCommand& made) { verb.json(made.json); });
  add_verb<EngineOptions>(
      engine, into, "run", "run the engine in the foreground, as a service manager wants it",
      "Examples:\n  hpcbatch engine run --config hpcbatch.yaml\n"
      "  hpcbatch engine run --check-config",
      [](Verb& verb, EngineOptions& made) {
        verb.path("--config", "FILE", made.config, kWhichConfig)
            .value("--log", "WORD", made.log, checked_log,
                   "format of the log: text, or json, one object a line (the configuration's)")
            .flag("--check-config", made.check_config, "only check the configuration: exit 0 or 2")
            .flag("--started-by-client", made.started_by_client,
                  "end after 30 minutes without work")
            .hidden()
            .flag("--limits-of-session", made.limits_of_session,
                  "take niceness, cpus and limits of the session")
            .hidden()
            .option("--ready-fd", "N", made.ready_descriptor, "pipe to report the start on")
            .hidden();
      });
}

void add_dropbox(CLI::App& app, Command& into) {
  add_verb<DropboxCommand>(
      app, into, "dropbox", "watch a folder for job files; without DIR, list those watched",
      "Examples:\n  hpcbatch dropbox /data/jobs --allow /data/results\n"
      "  hpcbatch dropbox /data/jobs --remove",
      [](Verb& verb, DropboxCommand& made) {
        verb.path("DIR", "", made.directory, "the folder")
            .values("--allow", "DIR", made.allow, whole_path,
                    "results may be written below here; may be repeated")
            .values("--templates", "DIR", made.templates, whole_path,
                    "templates of jobs are here; may be repeated")
            .values(
                "--var", "K=V", made.variables,
                [](const std::string& text) { return parse_assignment(text, "--var"); },
                "a variable of the templates; may be repeated")
            .flag("--remove", made.remove, "watch it no more; jobs that run are not ended")
            .json(made.json)
            .at_last([&made] {
              const bool has_settings =
                  !(made.allow.empty() && made.templates.empty() && made.variables.empty());
              if (made.directory.empty() && (has_settings || made.remove))
                throw std::invalid_argument("DIR is missing");
              if (made.remove && has_settings)
                throw std::invalid_argument("--remove goes with DIR alone");
            });
      });
}

void add_report(CLI::App& app, Command& into) {
  add_verb<ReportCommand>(
      app, into, "report", "what tasks asked for and used, and which changes would save most",
      "Examples:\n  hpcbatch report --since 30d\n"
      "  hpcbatch report --by client --csv > usage.csv\n"
      "Of kinds: cpu hours asked for and the share used, the share of memory used, hours run, what "
      "95 of 100 runs stayed below, hours waited.",
      [](Verb& verb, ReportCommand& made) {
        verb.value("--since", "WHEN", made.since, since_now,
                   "what has ended since that day: 30d, yesterday, monday, 2026-01-31 (7d); days "
                   "are those of UTC")
            .value("--by", "WORD", made.by, checked_by,
                   "a row for each kind of task, site, client or day (kind)")
            .flag("--csv", made.csv, "all rows, with titles")
            .option("--html", "FILE", made.html, "write a page with plots, a single file")
            .excludes("--csv")
            .option("--otlp", "FILE", made.otlp,
                    "write traces of tasks for OpenTelemetry, one JSON object a line")
            .excludes("--csv")
            .excludes("--html")
            .flag("--json", made.json, "one JSON object, with stable keys")
            .excludes("--csv")
            .excludes("--html");
      });
}

void add_web(CLI::App& app, Command& into) {
  add_verb<WebCommand>(
      app, into, "web", "open a page that shows tasks, pilots and waits live",
      "Examples:\n  hpcbatch web\n  hpcbatch web --view --port 8080",
      [](Verb& verb, WebCommand& made) {
        verb.option("--port", "N", made.port, "listen on this port of 127.0.0.1 (any that is free)")
            .flag("--view", made.view, "the page only looks: no cancel, retry or resume")
            .flag("--stay", made.stay, "keep running when this terminal is closed")
            .path(
                "--socket", "FILE", made.socket,
                "listen on this Unix socket instead, for a proxy that knows who you are (Jupyter)")
            .path("--metrics-token", "FILE", made.metrics_token,
                  "serve /metrics to who sends the token in this file")
            .json(made.json);
      });
  add_verb<MetricsCommand>(
      app, into, "metrics", "print metrics of the engine in Prometheus' text format",
      "Examples:\n  hpcbatch metrics\n"
      "  hpcbatch metrics > /var/lib/node_exporter/hpcbatch.prom\n"
      "To have them scraped: hpcbatch web --stay --port 9464 --metrics-token FILE",
      [](Verb&, MetricsCommand&) {});
}

}  // namespace

void add_inventory_verbs(CLI::App& app, Command& into) {
  CLI::App& sites =
      add_inventory(app, into, Kind::Sites, "sites", "the clusters and machines that run tasks",
                    "look at the site and say what works");
  add_sites_add(sites, into);
  add_act(sites, into, Kind::Sites, Act::Clean, "clean",
          "remove from its workspace what neither an allocation nor a kept result needs",
          "How long files stay, and how many, is set by keep_for and keep_limit of the site.\n"
          "Examples:\n  hpcbatch sites clean cluster --dry-run\n  hpcbatch sites clean cluster");
  add_act(sites, into, Kind::Sites, Act::Resume, "resume",
          "request pilots there again at once, if that pauses after refusals or failures",
          "Examples:\n  hpcbatch sites resume cluster\n  hpcbatch sites resume cluster --json");
  add_inventory(app, into, Kind::Allocations, "allocations", "the batch jobs that hold pilots",
                nullptr);
  add_inventory(app, into, Kind::Pilots, "pilots",
                "hpcbatch's processes on the nodes, which run tasks", nullptr);
  CLI::App& tools = add_inventory(app, into, Kind::Tools, "tools",
                                  "named kinds of task: inputs, outputs, needs, command",
                                  "whether its file is good and its plugin loads");
  add_verb<NewToolCommand>(tools, into, "new", "write the file of a tool to start from",
                           "Examples:\n  hpcbatch tools new loudness\n"
                           "  hpcbatch tools new loudness --dir ~/tools",
                           [](Verb& verb, NewToolCommand& made) {
                             verb.option("NAME", "", made.name, "of the tool")
                                 .required()
                                 .path("--dir", "DIR", made.directory, "write it there (.)")
                                 .json(made.json)
                                 .at_last([&made] {
                                   if (made.directory.empty()) made.directory = whole_path(".");
                                 });
                           });
}

void add_engine_verbs(CLI::App& app, Command& into) {
  add_engine(app, into);
  add_dropbox(app, into);
  add_verb<FsckOptions>(
      app, into, "fsck",
      "check a store that no engine uses, without changing it; exit 1 if it is damaged",
      "Examples:\n  hpcbatch fsck\n  hpcbatch fsck --salvage /data/saved.db",
      [](Verb& verb, FsckOptions& made) {
        verb.path("FILE", "", made.store,
                  "the store, or a copy of one; else that of the state directory")
            .path("--salvage", "NEWFILE", made.salvage, "write what can be read to a new store")
            .json(made.json);
      });
  add_verb<BackupCommand>(
      app, into, "backup", "copy the store of the engine that runs",
      "Examples:\n  hpcbatch backup /data/hpcbatch-store.db\n"
      "  hpcbatch backup backups/today.db --json\n"
      "To put it back: stop the engine, remove store.db and store.db-wal in its state directory, "
      "copy FILE to store.db. Keep store.db-mark: it records which ids were given since.",
      [](Verb& verb, BackupCommand& made) {
        verb.path("FILE", "", made.file, "a new file").required().json(made.json);
      });
  add_web(app, into);
  const auto add_commands = [&](const std::string& verb_name, const char* commands, bool of_pbs) {
    const std::string folder = std::string("~/hpcbatch-") + (of_pbs ? "pbs" : "slurm");
    add_verb<BatchCommandsCommand>(
        app, into, verb_name,
        std::string("make a folder with ") + commands + " and others that work with tasks",
        "Examples:\n  hpcbatch " + verb_name + " " + folder + "\n  PATH=" + folder + ":$PATH " +
            (of_pbs ? "qsub" : "sbatch") + " job.sh",
        [of_pbs](Verb& verb, BatchCommandsCommand& made) {
          made.of_pbs = of_pbs;
          verb.path("DIR", "", made.directory, "the folder; put it first in PATH")
              .required()
              .json(made.json);
        });
  };
  add_commands("slurm-commands", "sbatch, squeue", false);
  add_commands("pbs-commands", "qsub, qstat", true);
  add_verb<DoctorCommand>(app, into, "doctor",
                          "check this installation; exit 1 if something is bad",
                          "Examples:\n  hpcbatch doctor\n  hpcbatch doctor --json",
                          [](Verb& verb, DoctorCommand& made) { verb.json(made.json); });
  add_report(app, into);
  add_verb<TopCommand>(app, into, "top", "live view: submissions, tasks, pilots, waits; ? for help",
                       "Examples:\n  hpcbatch top\n  hpcbatch top --once",
                       [](Verb& verb, TopCommand& made) {
                         verb.flag("--once", made.once, "print it once").json(made.json);
                       });
}

// `plugin`: for those who write plugins.

void add_plugin_verbs(CLI::App& app, Command& into) {
  CLI::App& plugin = *app.add_subcommand("plugin", "write, check and list plugins");
  plugin.require_subcommand(1);
  plugin.footer("Examples:\n  hpcbatch plugin list\n  hpcbatch plugin new tool cut_silence");
  add_verb<PluginCommand>(plugin, into, "list", "what was found where, and what was refused",
                          "Examples:\n  hpcbatch plugin list\n  hpcbatch plugin list --json",
                          [](Verb& verb, PluginCommand& made) {
                            made.verb = "list";
                            verb.json(made.json);
                          });
  add_verb<PluginCommand>(
      plugin, into, "new", "write a project that builds and passes its tests",
      "Examples:\n  hpcbatch plugin new tool cut_silence\n"
      "  hpcbatch plugin new scheduler lsf --dir ~/lsf\n"
      "  hpcbatch plugin new transport in_container",
      [](Verb& verb, PluginCommand& made) {
        made.verb = "new";
        verb.app()
            .add_option("KIND", made.kind,
                        "tool, scheduler (which speaks LSF until you change it), or transport "
                        "(which puts a command before each command)")
            ->required()
            ->check(CLI::IsMember({"tool", "scheduler", "transport"}));
        verb.option("NAME", "", made.name, "small letters, digits and _")
            .required()
            .option("--dir", "DIR", made.directory, "write it there (./NAME)")
            .json(made.json)
            .at_last([&made] {
              if (made.directory.empty()) made.directory = made.name;
            });
      });
  add_verb<PluginCommand>(
      plugin, into, "check", "hold a plugin against the contract of its kind",
      "Examples:\n  hpcbatch plugin check build/cut.so --config cut.yaml\n"
      "  hpcbatch plugin check ./lsf.so\n"
      "It is loaded and asked in a process of its own: what it does wrong is told in words.",
      [](Verb& verb, PluginCommand& made) {
        made.verb = "check";
        verb.option("FILE", "", made.file, "the plugin: NAME.so")
            .required()
            .option("--config", "FILE", made.config,
                    "its configuration (none): of a tool its YAML file, of others what a site says")
            .option("--dir", "DIR", made.directory,
                    "of a transport: write there, on its site (a new folder in $TMPDIR)")
            .json(made.json);
      });
}

}  // namespace hpcbatch::detail
