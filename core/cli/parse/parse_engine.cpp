// The verbs about sites, allocations, pilots, tools and the engine itself.
#include "cli/parse/parse.hpp"
#include "cli/parse/spelled.hpp"
#include "documents/task_values.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <CLI/Validators.hpp>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>

namespace hpcbatch::detail {
namespace {

std::string absolute_path(const std::string& path) {
  if (path.empty()) throw std::invalid_argument("an empty text is not a path");
  std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

/// `into` outlives the parser's callbacks, as the command does that it belongs to.
template <class Into>
CLI::Option* add_path(CLI::App& verb, const char* name, const char* type, Into& into,
                      const char* says) {
  return add_value(
      verb, name, type, [&into](const std::string& text) { into = absolute_path(text); }, says);
}

void add_act(CLI::App& things, Command& into, InventoryCommand::Kind kind,
             InventoryCommand::Act act, const char* name, const std::string& description) {
  auto command = std::make_shared<InventoryCommand>();
  command->kind = kind;
  command->act = act;
  CLI::App* verb = things.add_subcommand(name, description);
  verb->add_option("NAME", command->name, "its name, as the list shows it")
      ->required()
      ->type_name("");
  const bool may_try_gpus =
      kind == InventoryCommand::Kind::Sites && act == InventoryCommand::Act::Check;
  if (may_try_gpus) {
    verb->add_flag("--gpu", command->gpus,
                   "instead send a task to each shape with GPUs: what its pilot finds of them");
    add_value(
        *verb, "--timeout", "DURATION",
        [command](const std::string& text) {
          command->gpus_within =
              std::chrono::duration<double>(*parse_duration(checked_duration(text))).count();
        },
        "with --gpu: wait so long for pilots (10m)");
  }
  add_json_flag(*verb, command->json);
  const std::string example = "\n  hpcbatch " + things.get_name() + " " + name + " NAME";
  verb->footer("Examples:" + example + example + " --json");
  verb->callback([command, &into] { into = *command; });
}

CLI::App* add_inventory(CLI::App& app, Command& into, InventoryCommand::Kind kind,
                        const std::string& name, const char* description,
                        const char* what_check_does) {
  auto command = std::make_shared<InventoryCommand>();
  command->kind = kind;
  CLI::App* verb = app.add_subcommand(name, description);
  verb->require_subcommand(0, 1);
  add_json_flag(*verb, command->json);
  const bool can_check = what_check_does != nullptr;
  verb->footer("Examples:\n  hpcbatch " + name + "\n  hpcbatch " + name +
               (can_check ? " check NAME" : " show NAME"));
  // A parent's callback runs before its children's, which then say otherwise.
  verb->parse_complete_callback([command, &into] { into = *command; });
  add_act(*verb, into, kind, InventoryCommand::Act::Show, "show", "one of them in full");
  if (can_check) add_act(*verb, into, kind, InventoryCommand::Act::Check, "check", what_check_does);
  return verb;
}

void add_new_tool(CLI::App& tools, Command& into) {
  auto command = std::make_shared<NewToolCommand>();
  CLI::App* verb = tools.add_subcommand("new", "write the file of a tool to start from");
  verb->add_option("NAME", command->name, "of the tool")->required()->type_name("");
  add_path(*verb, "--dir", "DIR", command->directory, "write it there (.)");
  add_json_flag(*verb, command->json);
  verb->footer(
      "Examples:\n  hpcbatch tools new loudness\n"
      "  hpcbatch tools new loudness --dir ~/tools");
  verb->callback([command, &into] {
    if (command->directory.empty()) command->directory = absolute_path(".");
    into = *command;
  });
}

void add_clean(CLI::App& sites, Command& into) {
  auto command = std::make_shared<InventoryCommand>();
  command->act = InventoryCommand::Act::Clean;
  CLI::App* verb = sites.add_subcommand(
      "clean", "remove from its workspace what neither an allocation nor a kept result needs");
  verb->add_option("NAME", command->name, "its name, as the list shows it")
      ->required()
      ->type_name("");
  verb->add_flag("--dry-run", command->dry_run, "only say what would go");
  add_json_flag(*verb, command->json);
  verb->footer(
      "How long files stay, and how many, is set by keep_for and keep_limit of the site.\n"
      "Examples:\n  hpcbatch sites clean cluster --dry-run\n  hpcbatch sites clean cluster");
  verb->callback([command, &into] { into = *command; });
}

void add_resume(CLI::App& sites, Command& into) {
  auto command = std::make_shared<InventoryCommand>();
  command->act = InventoryCommand::Act::Resume;
  CLI::App* verb = sites.add_subcommand(
      "resume", "ask it for pilots again at once, where that pauses after refusals or failures");
  verb->add_option("NAME", command->name, "its name, as the list shows it")
      ->required()
      ->type_name("");
  add_json_flag(*verb, command->json);
  verb->footer(
      "Examples:\n  hpcbatch sites resume cluster\n  hpcbatch sites resume cluster --json");
  verb->callback([command, &into] { into = *command; });
}

void add_sites_add(CLI::App& sites, Command& into) {
  auto options = std::make_shared<SitesAddOptions>();
  options->transport = "ssh";
  CLI::App* verb = sites.add_subcommand(
      "add",
      "ask a batch system what it has, show an entry for the configuration with shapes and limits, "
      "and write it when you say yes");
  verb->add_option("NAME", options->name, "a name for it")->required()->type_name("");
  add_value(
      *verb, "--workspace", "DIR",
      [options](const std::string& text) {
        if (!text.starts_with('/')) throw std::invalid_argument("'" + text + "' is not absolute");
        options->workspace = text;
      },
      "a folder that login node and compute nodes see; nothing is made there yet")
      ->required();
  verb->add_option("--scheduler", options->scheduler,
                   "slurm or pbs (what is found on this machine)")
      ->type_name("NAME");
  verb->add_option("--host", options->host, "the login node, by ssh (this machine)")
      ->type_name("HOST");
  verb->add_option("--user", options->user, "who logs in there (you)")->type_name("NAME");
  verb->add_option("--transport", options->transport,
                   "ssh, or openssh where ssh has to be configured (ssh)")
      ->type_name("NAME");
  add_path(*verb, "--config", "FILE", options->config,
           "this configuration ($HPCBATCH_CONFIG, else ~/.config/hpcbatch/config.yaml)");
  verb->add_flag("--yes", options->yes, "write without asking");
  verb->footer(
      "Examples:\n  hpcbatch sites add cluster --workspace /scratch/me/hpcbatch\n"
      "  hpcbatch sites add far --host login.example.org --scheduler pbs \\\n"
      "      --workspace /scratch/me/hpcbatch");
  verb->callback([options, &into] { into = *options; });
}

void add_engine_run(CLI::App& engine, Command& into) {
  auto options = std::make_shared<EngineOptions>();
  CLI::App* verb = engine.add_subcommand(
      "run", "run the engine in the foreground, as a service manager wants it");
  add_path(*verb, "--config", "FILE", options->config,
           "this configuration ($HPCBATCH_CONFIG, else ~/.config/hpcbatch/config.yaml)");
  verb->add_flag("--check-config", options->check_config,
                 "only check the configuration: exit 0 or 2");
  verb->add_flag("--started-by-client", options->started_by_client,
                 "end after 30 minutes without work")
      ->group("");
  verb->add_flag("--limits-of-session", options->limits_of_session,
                 "take niceness, cpus and limits of the session")
      ->group("");
  verb->add_option("--ready-fd", options->ready_descriptor, "pipe to report the start on")
      ->group("");
  verb->footer(
      "Examples:\n  hpcbatch engine run --config hpcbatch.yaml\n"
      "  hpcbatch engine run --check-config");
  verb->callback([options, &into] { into = *options; });
}

void add_engine(CLI::App& app, Command& into) {
  CLI::App* engine = app.add_subcommand("engine", "start, stop and look at the engine");
  engine->require_subcommand(1);
  engine->footer("Examples:\n  hpcbatch engine status\n  hpcbatch engine start");

  auto start = std::make_shared<EngineStartCommand>();
  CLI::App* verb =
      engine->add_subcommand("start", "start the engine in the background, if none runs");
  add_path(*verb, "--config", "FILE", start->config,
           "this configuration ($HPCBATCH_CONFIG, else ~/.config/hpcbatch/config.yaml)");
  verb->add_flag("--until-idle", start->until_idle,
                 "one that ends itself after 30 minutes without work");
  add_json_flag(*verb, start->json);
  verb->footer("Examples:\n  hpcbatch engine start\n  hpcbatch engine start --config mine.yaml");
  verb->callback([start, &into] { into = *start; });

  auto stop = std::make_shared<EngineStopCommand>();
  auto now = std::make_shared<bool>(false);
  auto drain = std::make_shared<bool>(false);
  verb =
      engine->add_subcommand("stop", "stop the engine; pilots and tasks go on and are found again");
  CLI::Option* drain_flag = verb->add_flag("--drain", *drain, "first wait for what runs");
  verb->add_flag("--now", *now, "cancel all tasks, also what waits or is held, and all pilots")
      ->excludes(drain_flag);
  verb->footer("Examples:\n  hpcbatch engine stop\n  hpcbatch engine stop --drain");
  verb->callback([stop, now, drain, &into] {
    using Mode = EngineStopCommand::Mode;
    into = EngineStopCommand{*now ? Mode::Now : *drain ? Mode::Drain : Mode::Leave};
  });

  auto reload = std::make_shared<EngineReloadCommand>();
  verb = engine->add_subcommand(
      "reload", "take a changed configuration over, if it is good; pilots and tasks go on");
  add_json_flag(*verb, reload->json);
  verb->footer("Examples:\n  hpcbatch engine reload\n  hpcbatch engine reload --json");
  verb->callback([reload, &into] { into = *reload; });
  verb = engine->add_subcommand(
      "restart", "a new engine in place of the one that runs, if any; pilots and tasks go on");
  add_json_flag(*verb, reload->json);
  verb->footer("Examples:\n  hpcbatch engine restart\n  hpcbatch engine restart --json");
  verb->callback([reload, &into] {
    reload->or_start = true;
    into = *reload;
  });

  auto status = std::make_shared<EngineStatusCommand>();
  verb = engine->add_subcommand("status",
                                "whether an engine runs, and what it has (exit 3: none runs)");
  add_json_flag(*verb, status->json);
  verb->footer("Examples:\n  hpcbatch engine status\n  hpcbatch engine status --json");
  verb->callback([status, &into] { into = *status; });

  add_engine_run(*engine, into);
}

void add_dropbox(CLI::App& app, Command& into) {
  auto command = std::make_shared<DropboxCommand>();
  CLI::App* verb = app.add_subcommand(
      "dropbox", "watch a folder for job files; without DIR, list those watched");
  add_path(*verb, "DIR", "", command->directory, "the folder");
  add_values(
      *verb, "--allow", "DIR",
      [command](const std::string& text) { command->allow.push_back(absolute_path(text)); },
      "results may be written below here; may be repeated");
  add_values(
      *verb, "--templates", "DIR",
      [command](const std::string& text) { command->templates.push_back(absolute_path(text)); },
      "templates of jobs are here; may be repeated");
  add_values(
      *verb, "--var", "K=V",
      [command](const std::string& text) {
        command->variables.push_back(parse_assignment(text, "--var"));
      },
      "a variable of the templates; may be repeated");
  verb->add_flag("--remove", command->remove, "watch it no more; jobs that run are not ended");
  add_json_flag(*verb, command->json);
  verb->footer(
      "Examples:\n  hpcbatch dropbox /data/jobs --allow /data/results\n"
      "  hpcbatch dropbox /data/jobs --remove");
  verb->callback([command, &into] {
    const bool has_settings =
        !(command->allow.empty() && command->templates.empty() && command->variables.empty());
    if (command->directory.empty() && (has_settings || command->remove))
      throw CLI::ValidationError("DIR is missing");
    if (command->remove && has_settings) throw CLI::ValidationError("--remove goes with DIR alone");
    into = *command;
  });
}

void add_fsck(CLI::App& app, Command& into) {
  auto options = std::make_shared<FsckOptions>();
  CLI::App* verb = app.add_subcommand(
      "fsck", "check a store that no engine uses, without changing it; exit 1 if it is damaged");
  add_path(*verb, "FILE", "", options->store,
           "the store, or a copy of one; else that of the state directory");
  add_path(*verb, "--salvage", "NEWFILE", options->salvage,
           "write what can be read to a new store");
  add_json_flag(*verb, options->json);
  verb->footer("Examples:\n  hpcbatch fsck\n  hpcbatch fsck --salvage /data/saved.db");
  verb->callback([options, &into] { into = *options; });
}

void add_backup(CLI::App& app, Command& into) {
  auto command = std::make_shared<BackupCommand>();
  CLI::App* verb = app.add_subcommand("backup", "copy the store of the engine that runs");
  add_path(*verb, "FILE", "", command->file, "a new file")->required();
  add_json_flag(*verb, command->json);
  verb->footer(
      "Examples:\n  hpcbatch backup /data/hpcbatch-store.db\n"
      "  hpcbatch backup backups/today.db --json\n"
      "To put it back: stop the engine, remove store.db and store.db-wal in its state directory, "
      "copy FILE to store.db. Leave store.db-mark: it says which ids were given since.");
  verb->callback([command, &into] { into = *command; });
}

void add_web(CLI::App& app, Command& into) {
  auto command = std::make_shared<WebCommand>();
  CLI::App* verb = app.add_subcommand("web", "open a page that shows tasks, pilots and waits live");
  verb->add_option("--port", command->port, "listen on this port of 127.0.0.1 (any that is free)")
      ->type_name("N");
  verb->add_flag("--view", command->view, "the page only looks: no cancel, retry or resume");
  verb->add_flag("--stay", command->stay, "stay when this terminal is closed");
  add_path(*verb, "--socket", "", command->socket,
           "listen on this Unix socket instead, for a proxy that knows who you are (Jupyter)");
  add_json_flag(*verb, command->json);
  verb->footer("Examples:\n  hpcbatch web\n  hpcbatch web --view --port 8080");
  verb->callback([command, &into] { into = *command; });
}

void add_batch_commands(CLI::App& app, Command& into, bool of_pbs) {
  auto command = std::make_shared<BatchCommandsCommand>();
  command->of_pbs = of_pbs;
  CLI::App* verb = app.add_subcommand(of_pbs ? "pbs-commands" : "slurm-commands",
                                      std::string("make a folder of ") +
                                          (of_pbs ? "qsub, qstat" : "sbatch, squeue") +
                                          " and others that are for tasks");
  add_path(*verb, "DIR", "", command->directory, "the folder; put it first in PATH")->required();
  add_json_flag(*verb, command->json);
  const std::string name = of_pbs ? "pbs" : "slurm";
  verb->footer("Examples:\n  hpcbatch " + name + "-commands ~/hpcbatch-" + name +
               "\n  PATH=~/hpcbatch-" + name + ":$PATH nextflow run main.nf");
  verb->callback([command, &into] { into = *command; });
}

}  // namespace

void add_inventory_verbs(CLI::App& app, Command& into) {
  using Kind = InventoryCommand::Kind;
  CLI::App* sites = add_inventory(app, into, Kind::Sites, "sites", "the places with a batch system",
                                  "look at the site and say what works");
  add_sites_add(*sites, into);
  add_clean(*sites, into);
  add_resume(*sites, into);
  add_inventory(app, into, Kind::Allocations, "allocations", "the batch jobs that hold pilots",
                nullptr);
  add_inventory(app, into, Kind::Pilots, "pilots", "our processes on the nodes", nullptr);
  CLI::App* tools = add_inventory(app, into, Kind::Tools, "tools", "the recipes of tasks",
                                  "whether its file is good and its plugin loads");
  add_new_tool(*tools, into);
}

namespace {

void add_report(CLI::App& app, Command& into) {
  auto report = std::make_shared<ReportCommand>();
  CLI::App* verb = app.add_subcommand(
      "report", "what tasks asked for and used, and which changes would save most");
  add_value(
      *verb, "--since", "WHEN",
      [report](const std::string& text) { report->since = parse_since(text, std::time(nullptr)); },
      "what has ended since that day: 30d, yesterday, monday, 2026-01-31 (7d); days are those of "
      "UTC");
  add_value(
      *verb, "--by", "WORD",
      [report](const std::string& text) {
        const std::vector<std::string> known{"kind", "site", "client", "day"};
        if (std::find(known.begin(), known.end(), text) == known.end())
          throw std::invalid_argument("'" + text + "' is none of what reports are by" +
                                      spelling_hint(text, known));
        report->by = text;
      },
      "a row for each kind of task, site, client or day (kind)");
  CLI::Option* csv = verb->add_flag("--csv", report->csv, "all rows, with titles");
  CLI::Option* html = verb->add_option("--html", report->html,
                                       "write a page with plots, which needs nothing beside it")
                          ->type_name("FILE")
                          ->excludes(csv);
  verb->add_flag("--json", report->json, "one JSON object, with stable keys")
      ->excludes(csv)
      ->excludes(html);
  verb->footer(
      "Examples:\n  hpcbatch report --since 30d\n"
      "  hpcbatch report --by client --csv > usage.csv\n"
      "Of kinds: cpu hours asked for and the share used, the share of memory used, hours run, what "
      "95 of 100 runs stayed below, hours waited.");
  verb->callback([report, &into] { into = *report; });
}

}  // namespace

void add_engine_verbs(CLI::App& app, Command& into) {
  add_engine(app, into);
  add_dropbox(app, into);
  add_fsck(app, into);
  add_backup(app, into);
  add_web(app, into);
  add_batch_commands(app, into, false);
  add_batch_commands(app, into, true);

  auto doctor = std::make_shared<DoctorCommand>();
  CLI::App* verb =
      app.add_subcommand("doctor", "check this installation; exit 1 if something is bad");
  add_json_flag(*verb, doctor->json);
  verb->footer("Examples:\n  hpcbatch doctor\n  hpcbatch doctor --json");
  verb->callback([doctor, &into] { into = *doctor; });

  add_report(app, into);

  auto top = std::make_shared<TopCommand>();
  verb = app.add_subcommand("top", "live view of engine, pilots and tasks; q ends it");
  verb->add_flag("--once", top->once, "print it once");
  add_json_flag(*verb, top->json);
  verb->footer("Examples:\n  hpcbatch top\n  hpcbatch top --once");
  verb->callback([top, &into] { into = *top; });
}

// `plugin`: for those who write plugins.

namespace {

void add_plugin_list(CLI::App& plugin, Command& into) {
  auto list = std::make_shared<PluginCommand>();
  CLI::App* verb = plugin.add_subcommand("list", "what was found where, and what was refused");
  add_json_flag(*verb, list->json);
  verb->footer("Examples:\n  hpcbatch plugin list\n  hpcbatch plugin list --json");
  verb->callback([list, &into] {
    list->verb = "list";
    into = *list;
  });
}

void add_plugin_new(CLI::App& plugin, Command& into) {
  auto made = std::make_shared<PluginCommand>();
  CLI::App* verb = plugin.add_subcommand("new", "write a project that builds and passes its tests");
  verb->add_option(
          "KIND", made->kind,
          "tool, scheduler (which speaks LSF until you change it), or transport (which puts a "
          "command before each command)")
      ->required()
      ->check(CLI::IsMember({"tool", "scheduler", "transport"}));
  verb->add_option("NAME", made->name, "small letters, digits and _")->required();
  verb->add_option("--dir", made->directory, "write it there (./NAME)")->type_name("DIR");
  add_json_flag(*verb, made->json);
  verb->footer(
      "Examples:\n  hpcbatch plugin new tool cut_silence\n"
      "  hpcbatch plugin new scheduler lsf --dir ~/lsf\n"
      "  hpcbatch plugin new transport in_container");
  verb->callback([made, &into] {
    made->verb = "new";
    if (made->directory.empty()) made->directory = made->name;
    into = *made;
  });
}

void add_plugin_check(CLI::App& plugin, Command& into) {
  auto check = std::make_shared<PluginCommand>();
  CLI::App* verb = plugin.add_subcommand("check", "hold a plugin against the contract of its kind");
  verb->add_option("FILE", check->file, "the plugin: NAME.so")->required();
  verb->add_option("--config", check->config,
                   "its configuration (none): of a tool its YAML file, of others what a site says")
      ->type_name("FILE");
  verb->add_option("--dir", check->directory,
                   "of a transport: write there, on its site (a new folder in $TMPDIR)")
      ->type_name("DIR");
  add_json_flag(*verb, check->json);
  verb->footer(
      "Examples:\n  hpcbatch plugin check build/cut.so --config cut.yaml\n"
      "  hpcbatch plugin check ./lsf.so\n"
      "It is loaded and asked in a process of its own: what it does wrong is told in words.");
  verb->callback([check, &into] {
    check->verb = "check";
    into = *check;
  });
}

}  // namespace

void add_plugin_verbs(CLI::App& app, Command& into) {
  CLI::App* plugin = app.add_subcommand("plugin", "write, check and list plugins");
  plugin->require_subcommand(1);
  plugin->footer("Examples:\n  hpcbatch plugin list\n  hpcbatch plugin new tool cut_silence");
  add_plugin_list(*plugin, into);
  add_plugin_new(*plugin, into);
  add_plugin_check(*plugin, into);
}

}  // namespace hpcbatch::detail
