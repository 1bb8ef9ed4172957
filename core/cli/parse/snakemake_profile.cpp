// `snakemake-profile`: what a user of Snakemake puts into ~/.config/snakemake/hpcbatch/config.yaml.
#include "cli/parse/parse.hpp"

#include <CLI/App.hpp>

namespace hpcbatch::detail {
namespace {

constexpr const char* kProfile = R"(# Snakemake on hpcbatch: snakemake --profile hpcbatch
# Written by `hpcbatch snakemake-profile`; the settings are yours to change.
executor: hpcbatch
# From a checkout of hpcbatch: pip install ./python ./snakemake ./snakemake/scheduler
scheduler: hpcbatch
# Everything that is ready is queued; what starts when is decided where there is room.
jobs: 100000
# Of a job that says nothing: a pilot packs jobs by what they ask for.
default-resources:
  - mem_mb=2000
  - runtime=60
# What a lost node or a pilot's end cut runs again by itself; a command that fails once fails again.
retries: 0
# What a Snakemake that was killed has running is taken up, not run again.
rerun-incomplete: true
latency-wait: 30
)";

}  // namespace

void add_snakemake_verbs(CLI::App& app, Command& into) {
  CLI::App* verb =
      app.add_subcommand("snakemake-profile", "print a profile for Snakemake with this executor");
  verb->footer(
      "Examples:\n  hpcbatch snakemake-profile > ~/.config/snakemake/hpcbatch/config.yaml\n"
      "  snakemake --profile hpcbatch");
  verb->callback([&into] { into = ShowText{kProfile}; });
}

}  // namespace hpcbatch::detail
