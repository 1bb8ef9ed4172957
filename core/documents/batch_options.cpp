#include "documents/batch_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace hpcbatch {
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
