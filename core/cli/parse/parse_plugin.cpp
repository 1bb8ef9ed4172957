// `plugin`: for those who write plugins.
#include "cli/parse/flags.hpp"
#include "cli/parse/parse.hpp"

#include <CLI/Validators.hpp>

#include <memory>

namespace hpcbatch::detail {
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
