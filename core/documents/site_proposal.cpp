#include "documents/site_proposal.hpp"

#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using entry::duration;
using entry::link_word;
using entry::list;
using entry::plugin;
using entry::quoted_scalar;
using entry::scalar;
using entry::size;

constexpr std::uint64_t kMega = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiga = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastMemory = 256 * kMega;
constexpr double kMostCpus = 65536;
constexpr std::uint32_t kMostGpus = 1024;
constexpr std::uint32_t kMostProposedBatchJobs = 100'000;
/// Longer ones wait longer in most queues, and few tasks need them.
constexpr std::chrono::seconds kLongestWalltime = 24h;
constexpr std::chrono::seconds kShortestWalltime = 10s;

/// Nodes keep some for themselves, and a batch system that counts less than was asked for lets the
/// batch job wait for ever.
std::uint64_t memory_to_ask_for(std::uint64_t of_node) {
  const std::uint64_t most = of_node / 100 * 95;
  return most >= 8 * kGiga ? most / kGiga * kGiga : most / (64 * kMega) * (64 * kMega);
}

std::string gpus(const NodeKind& kind) {
  return "{" +
         joined(kind.gpus, ", ",
                [](const auto& of) { return fmt::format("{}: {}", scalar(of.first), of.second); }) +
         "}";
}

/// What can be written of a kind of node; nothing, and why, where that is not enough for a shape.
struct Sized {
  NodeKind kind;
  std::string why_not;
  std::string note;
};

Sized sized(const NodeKind& node, bool is_local) {
  Sized result{node, "", ""};
  NodeKind& kind = result.kind;
  kind.cpus = std::min(static_cast<double>(static_cast<std::int64_t>(node.cpus)), kMostCpus);
  kind.memory = memory_to_ask_for(node.memory);
  if (const auto any = kind.gpus.extract(""); any && any.mapped() > 0 && kind.gpus.empty())
    kind.gpus[std::string(kGpuWithoutKind)] = any.mapped();
  std::erase_if(kind.gpus, [](const auto& gpu) { return gpu.second == 0 || !is_word(gpu.first); });
  for (auto& [name, count] : kind.gpus) count = std::min(count, kMostGpus);
  if (kind.gpus.size() != node.gpus.size())
    result.note = "GPUs whose kind is not named by the batch system are left out";
  if (!is_local && kind.cpus < 1) {
    result.why_not = "the batch system does not say how many cpus its nodes have";
  } else if (kind.memory < kLeastMemory && !(is_local && node.memory == 0)) {
    result.why_not = node.memory <= kMega
                         ? "the batch system does not say how much memory its nodes have"
                         : "its nodes have less than 256M of memory";
  }
  return result;
}

/// Whether a shape for the one is a shape for the other.
bool is_same(const NodeKind& a, const NodeKind& b) {
  return a.cpus == b.cpus && a.memory == b.memory && a.gpus == b.gpus;
}

std::string kinds_of_gpus(const NodeKind& kind) {
  std::string text;
  for (const auto& [name, count] : kind.gpus) text += "-" + name;
  return text;
}

std::string counts_of_gpus(const NodeKind& kind) {
  std::string text;
  for (const auto& [name, count] : kind.gpus) text += fmt::format("-{}{}", count, name);
  return text;
}

/// What tells each kind of node from the others of its partition, in a name: one property where
/// that is enough, else all.
std::vector<std::string> endings(const std::vector<Sized>& kinds) {
  using Say = std::string (*)(const NodeKind&);
  const std::vector<Say> ways{kinds_of_gpus, counts_of_gpus,
                              [](const NodeKind& kind) { return fmt::format("-{:g}c", kind.cpus); },
                              [](const NodeKind& kind) { return "-" + size(kind.memory); }};
  const auto said = [&kinds](Say say) {
    std::vector<std::string> words;
    words.reserve(kinds.size());
    for (const Sized& one : kinds) words.push_back(say(one.kind));
    return words;
  };
  if (kinds.size() == 1) return {""};
  for (const Say say : ways) {
    auto words = said(say);
    if (std::set<std::string>(words.begin(), words.end()).size() == kinds.size()) return words;
  }
  std::vector<std::string> names(kinds.size());
  for (const Say say : {ways[1], ways[2], ways[3]}) {
    const auto words = said(say);
    for (std::size_t i = 0; i < names.size(); ++i) names[i] += words[i];
  }
  return names;
}

struct Counts {
  std::uint32_t queued;
  std::uint32_t running;
};

/// No more than the batch system grants, and where it grants more than the site has now, as many as
/// now: a limit is no reason to use it up.
Counts within(const JobLimits& limits, Counts now) {
  if (limits.running) now.running = std::min(now.running, std::max(*limits.running, 1U));
  if (limits.all) {
    const std::uint32_t all = std::max(*limits.all, 2U);
    now.queued = std::min(now.queued, all / 2);
    now.running = std::min(now.running, all - now.queued);
  }
  return {std::clamp(now.queued, 1U, kMostProposedBatchJobs),
          std::clamp(now.running, 1U, kMostProposedBatchJobs)};
}

/// Of what one partition grants to all its shapes together, the part of one: the first get what is
/// left over.
std::uint32_t share(std::uint32_t granted, std::size_t shapes, std::size_t at) {
  const auto each = static_cast<std::uint32_t>(granted / shapes);
  return std::max(each + (at < granted % shapes ? 1U : 0U), 1U);
}

class Composer {
 public:
  Composer(const Site& site, const Survey& survey) : site_(site), survey_(survey) {}

  SiteProposal compose() {
    head();
    const std::size_t before = text_.size();
    text_ += "  shapes:\n";
    const std::size_t none = text_.size();
    for (const SurveyedPartition& partition : survey_.partitions) shapes_of(partition);
    if (text_.size() == none) {
      text_.resize(before);
      if (!is_local_) text_.clear();
    }
    return {std::move(text_), std::move(notes_)};
  }

 private:
  void line(std::string_view key, const std::string& value) {
    text_ += fmt::format("{} {}: {}\n", text_.empty() ? "-" : " ", key, value);
  }

  void head() {
    const Site plain;
    line("name", scalar(site_.name));
    line("scheduler", plugin(site_.scheduler, site_.scheduler_config));
    if (site_.transport != "shared_fs" || !site_.transport_config.empty())
      line("transport", plugin(site_.transport, site_.transport_config));
    if (!site_.workspace.empty()) line("workspace", scalar(site_.workspace));
    if (!site_.trust_group.empty()) line("trust_group", scalar(site_.trust_group));
    path_map();
    if (site_.link != plain.link) line("link", link_word(site_.link));
    if (!site_.interface.empty()) line("interface", quoted_scalar(site_.interface));
    if (!site_.relay_interface.empty())
      line("relay_interface", quoted_scalar(site_.relay_interface));
    if (site_.store_limit != plain.store_limit) line("store", size(site_.store_limit));
    if (site_.keep_for != plain.keep_for) line("keep_for", duration(site_.keep_for));
    if (site_.keep_limit != plain.keep_limit) line("keep_limit", size(site_.keep_limit));
    if (site_.output_limit != plain.output_limit) {
      line("output_limit",
           site_.output_limit == kNoOutputLimit ? "none" : size(site_.output_limit));
    }
    if (site_.scratch != plain.scratch) line("scratch", scalar(site_.scratch));
    if (site_.shares_gpus_by_mps) line("gpu_sharing", "mps");
    if (!site_.gpu_test.empty()) line("gpu_test", scalar(site_.gpu_test));
    if (!site_.setup.empty()) line("setup", list(site_.setup));
    if (!site_.options.empty()) line("options", list(site_.options));
    if (!site_.asks_for_memory) line("ask_memory", "false");
    if (site_.idle_after != plain.idle_after) line("idle_after", duration(site_.idle_after));
    if (site_.poll_every != plain.poll_every) line("poll_every", duration(site_.poll_every));
    if (site_.settle_after != plain.settle_after)
      line("settle_after", duration(site_.settle_after));
    if (site_.lost_after != plain.lost_after) line("lost_after", duration(site_.lost_after));
    const Counts counts = within(survey_.limits, {site_.max_queued, site_.max_running});
    line("max_queued", fmt::format("{}", counts.queued));
    line("max_running", fmt::format("{}", counts.running));
    note_limits("the batch system lets you have", survey_.limits);
  }

  void path_map() {
    const PathMap usual = site_.transport == "shared_fs" ? everything_shared() : PathMap{};
    if (site_.path_map == usual) return;
    const std::string folders = joined(site_.path_map, ", ", [](const SharedFolder& folder) {
      return fmt::format("{}: {}", scalar(folder.here), scalar(folder.there));
    });
    line("path_map", "{" + folders + "}");
  }

  void note_limits(const std::string& who, const JobLimits& limits) {
    if (limits.running)
      notes_.push_back(fmt::format("{} {} batch jobs running", who, *limits.running));
    if (limits.all)
      notes_.push_back(fmt::format("{} {} batch jobs queued and running", who, *limits.all));
  }

  void leave_out(const SurveyedPartition& partition, const std::string& why) {
    notes_.push_back(
        fmt::format("partition {} is left out: {}", show_text(partition.name, 64), why));
  }

  void shapes_of(const SurveyedPartition& partition) {
    if (!partition.name.empty() && !is_word(partition.name))
      return leave_out(partition, "a partition of this name cannot be configured");
    if (!partition.is_open)
      return leave_out(partition, partition.why_closed.empty()
                                      ? "it takes no batch jobs now"
                                      : "it is " + show_text(partition.why_closed));
    if (partition.walltime && *partition.walltime < kShortestWalltime)
      return leave_out(partition, "its walltime is too short for a pilot");
    std::vector<Sized> kinds;
    for (const NodeKind& node : partition.kinds) {
      Sized one = sized(node, is_local_);
      if (!one.why_not.empty()) {
        leave_out(partition, one.why_not);
      } else if (std::none_of(kinds.begin(), kinds.end(),
                              [&](const Sized& other) { return is_same(one.kind, other.kind); })) {
        kinds.push_back(std::move(one));
      }
    }
    if (partition.kinds.empty())
      leave_out(partition, partition.why_closed.empty()
                               ? "it has no nodes that could be seen"
                               : "it is " + show_text(partition.why_closed));
    const Counts site = within(survey_.limits, {site_.max_queued, site_.max_running});
    const Counts own = within(partition.limits, site);
    const bool is_limited = own.queued < site.queued || own.running < site.running;
    if (is_limited && kinds.size() > own.running) {
      notes_.push_back(
          fmt::format("partition {}: {} kinds of nodes are left out, for no more than {} batch "
                      "jobs may be there",
                      partition.name, kinds.size() - own.running, own.running));
      kinds.resize(own.running);
    }
    const std::vector<std::string> names = endings(kinds);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      shape(partition, kinds[i], names[i]);
      // The limit holds for all of them together.
      const Counts part{share(own.queued, kinds.size(), i), share(own.running, kinds.size(), i)};
      if (is_limited && part.queued < site.queued)
        text_ += fmt::format("      max_queued: {}\n", part.queued);
      if (is_limited && part.running < site.running)
        text_ += fmt::format("      max_running: {}\n", part.running);
    }
    if (!kinds.empty())
      note_limits("partition " + partition.name + " lets you have", partition.limits);
  }

  void shape(const SurveyedPartition& partition, const Sized& sized, const std::string& ending) {
    const NodeKind& kind = sized.kind;
    std::string name = (partition.name.empty() ? "machine" : partition.name) + ending;
    for (std::size_t i = names_.size() + 1; !is_word(name) || names_.contains(name); ++i)
      name = fmt::format("shape{}", i);
    names_.insert(name);
    text_ += "    - name: " + scalar(name) + "\n";
    const auto say = [this](std::string_view key, const std::string& value) {
      text_ += fmt::format("      {}: {}\n", key, value);
    };
    if (!partition.name.empty()) say("partition", scalar(partition.name));
    if (kind.cpus >= 1) say("cpus", fmt::format("{:.0f}", kind.cpus));
    if (kind.memory >= kLeastMemory) say("memory", size(kind.memory));
    if (!kind.gpus.empty()) say("gpus", gpus(kind));
    if (!is_local_ || partition.walltime)
      say("walltime", duration(std::min(kLongestWalltime, partition.walltime.value_or(24h))));
    if (!sized.note.empty()) notes_.push_back("shape " + name + ": " + sized.note);
  }

  const Site& site_;
  const Survey& survey_;
  const bool is_local_{site_.scheduler == "local"};
  std::string text_;
  std::vector<std::string> notes_;
  std::set<std::string> names_;
};

bool is_empty_or_comment(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos || line[first] == '#';
}

/// `sites:` alone on its line.
bool begins_list(std::string_view line) {
  return line.starts_with("sites:") && is_empty_or_comment(line.substr(6));
}

std::string indented(const std::string& item, std::size_t blanks) {
  std::string out;
  for (const std::string_view line : lines_of(item))
    out.append(line.empty() ? 0 : blanks, ' ').append(line).append("\n");
  return out;
}

}  // namespace

SiteProposal propose_site(const Site& site, const Survey& survey) {
  return Composer(site, survey).compose();
}

std::optional<std::string> with_site(const std::string& configuration, const std::string& item) {
  const auto lines = lines_of(configuration);
  const auto key = std::find_if(lines.begin(), lines.end(),
                                [](std::string_view line) { return line.starts_with("sites:"); });
  const std::string ending = configuration.empty() || configuration.back() == '\n' ? "" : "\n";
  if (key == lines.end()) return configuration + ending + "sites:\n" + indented(item, 2);
  if (!begins_list(*key)) return std::nullopt;
  // The next key ends it; what stands between, empty lines and comments, belongs to that one.
  auto end = std::find_if(key + 1, lines.end(), [](std::string_view line) {
    return !is_empty_or_comment(line) && line.front() != ' ' && line.front() != '-';
  });
  while (end != key + 1 && is_empty_or_comment(*(end - 1))) --end;
  const auto first = std::find_if_not(key + 1, end, is_empty_or_comment);
  const std::size_t blanks = first == end ? 2 : first->find('-');
  std::string out;
  for (auto line = lines.begin(); line != end; ++line) out.append(*line) += '\n';
  out += indented(item, blanks == std::string::npos ? 2 : blanks);
  for (auto line = end; line != lines.end(); ++line) out.append(*line) += '\n';
  return out;
}

}  // namespace hpcbatch
