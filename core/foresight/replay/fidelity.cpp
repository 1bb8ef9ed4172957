#include "foresight/replay/fidelity.hpp"

#include "foresight/look_ahead.hpp"

#include <hpcbatch/batch_time.hpp>
#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace hpcbatch::foresight {
namespace {

/// Who asked for no limit is planned with a year.
constexpr Seconds kNoLimit = 365 * kDay;
constexpr std::size_t kTitlesUntil = 10;
constexpr const char* kCutInALine = "the trace ends in the middle of a line: it is cut off";
// No cluster has more; what says so is damaged.
constexpr Seconds kMostNodes = 10'000'000;
constexpr Seconds kLongestTrace = kDay * 365 * 50;
// Of jobs that have half of their nodes or less; more than this part of all is a cluster whose nodes
// are shared.
constexpr double kFewShare = 0.05;

std::vector<std::string> words_of(const std::string& line) {
  char mark = ' ';
  if (line.find('\t') != std::string::npos) mark = '\t';
  if (line.find('|') != std::string::npos) mark = '|';
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, mark);) {
    while (!word.empty() && (word.back() == '\r' || word.back() == ' ')) word.pop_back();
    if (!word.empty() || mark != ' ') words.push_back(word);
  }
  return words;
}

/// 16, or 2K as sacct writes round numbers unless it is told not to.
std::optional<std::int32_t> nodes_of(std::string text) {
  std::int64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    unit = text.back() == 'K' ? 1024 : 1024 * 1024;
    text.pop_back();
  }
  const auto count = number_in<double>(text);
  if (!count || *count < 0 || *count * static_cast<double>(unit) > kMostNodes) return std::nullopt;
  return static_cast<std::int32_t>(*count * static_cast<double>(unit));
}

/// 2022-11-01T15:34:14, of whatever zone: all of a trace are of one.
std::optional<Seconds> moment_of(const std::string& text) {
  constexpr std::string_view kMask = "0000-00-00T00:00:00";
  if (text.size() != kMask.size()) return std::nullopt;
  std::array<std::int64_t, 6> part{};
  std::size_t which = 0;
  for (std::size_t i = 0; i < kMask.size(); ++i) {
    if (kMask[i] != '0') {
      if (text[i] != kMask[i]) return std::nullopt;
      ++which;
    } else if (text[i] < '0' || text[i] > '9') {
      return std::nullopt;
    } else {
      part[which] = part[which] * 10 + (text[i] - '0');
    }
  }
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(part[0])},
                                         std::chrono::month{static_cast<unsigned>(part[1])},
                                         std::chrono::day{static_cast<unsigned>(part[2])}};
  if (!date.ok() || part[3] > 23 || part[4] > 59 || part[5] > 60) return std::nullopt;
  const Seconds days = std::chrono::sys_days{date}.time_since_epoch().count();
  return days * kDay + part[3] * kHour + part[4] * kMinute + part[5];
}

std::uint32_t letters_of(const std::string& name) {
  std::string letters;
  for (const char c : name) {
    if (c < '0' || c > '9') letters += c;
  }
  return static_cast<std::uint32_t>(std::hash<std::string>{}(letters));
}

/// Where the columns of sacct stand.
class Columns {
 public:
  explicit Columns(std::vector<std::string> titles) : titles_(std::move(titles)) {}
  /// One that is cut to its width begins as the whole title does.
  std::optional<std::size_t> of(std::string_view title) const {
    const auto whole = std::find(titles_.begin(), titles_.end(), title);
    if (whole != titles_.end()) return static_cast<std::size_t>(whole - titles_.begin());
    for (std::size_t i = 0; i < titles_.size(); ++i) {
      if (titles_[i].size() >= 5 && title.starts_with(titles_[i])) return i;
    }
    return std::nullopt;
  }
  std::size_t needed(std::string_view title) const {
    const auto at = of(title);
    if (!at)
      throw std::invalid_argument("the trace has no column " + std::string(title) +
                                  " among its titles; ask sacct for it with --format");
    return *at;
  }

 private:
  std::vector<std::string> titles_;
};

class SacctReader {
 public:
  SacctReader(const std::string& titles, std::string partition)
      : columns_(words_of(titles)), wanted_(std::move(partition)) {
    const bool limit_is_raw = !columns_.of("Timelimit") || columns_.of("TimelimitRaw");
    limit_ = columns_.needed(limit_is_raw ? "TimelimitRaw" : "Timelimit");
    user_ = columns_.of("UID") ? columns_.of("UID") : columns_.of("User");
    trace_.has_priorities = priority_.has_value();
    if (!wanted_.empty() && !partition_)
      throw std::invalid_argument("the trace has no column Partition: leave out the partition");
  }

  void read(const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    const auto word = [&](std::size_t at) { return at < words.size() ? words[at] : std::string(); };
    if (id_ && word(*id_).find('.') != std::string::npos) return;  // a step of a job
    if (!wanted_.empty() && word(*partition_) != wanted_) return;
    const auto started = moment_of(word(start_)), submitted = moment_of(word(submit_)),
               ended = moment_of(word(end_));
    const auto nodes = nodes_of(word(nodes_));
    const auto limit = limit_of(word(limit_));
    if (!started || !submitted || !ended || !nodes || !limit || *limit <= 0 ||
        *started < *submitted || *ended < *started) {
      ++trace_.skipped;
      return;
    }
    if (partition_) partitions_.insert(word(*partition_));
    TracedJob traced;
    traced.started = *started;
    traced.job.submitted = *submitted;
    traced.job.limit = std::min(*limit, kNoLimit);
    traced.job.runs = *ended - *started;
    traced.job.nodes = std::max(*nodes, 1);
    if (cpus_) {
      const auto cpus = nodes_of(word(*cpus_));
      cpus_of_.push_back(std::max(cpus.value_or(0), traced.job.nodes));
    }
    if (priority_) traced.job.priority = number_in<double>(word(*priority_)).value_or(0);
    if (name_) traced.job.name = letters_of(word(*name_));
    if (user_) {
      traced.job.user =
          users_.emplace(word(*user_), static_cast<std::int32_t>(users_.size())).first->second;
    }
    trace_.jobs.push_back(traced);
  }

  Trace all() {
    if (wanted_.empty() && partitions_.size() > 1) {
      throw std::invalid_argument("the trace has jobs of several partitions (" +
                                  joined(partitions_, ", ") +
                                  "), each with a queue of its own: name one with --partition");
    }
    count_cpus();
    return std::move(trace_);
  }

 private:
  /// Where jobs share nodes, how many nodes they have says little of what is left for others.
  void count_cpus() {
    if (!cpus_) {
      trace_.notes.emplace_back(
          "no column AllocCPUS: each job is taken to have its nodes for itself");
      return;
    }
    std::int32_t of_a_node = 1;
    for (std::size_t i = 0; i < cpus_of_.size(); ++i)
      of_a_node = std::max(of_a_node, cpus_of_[i] / trace_.jobs[i].job.nodes);
    const auto shares = [&](std::size_t i) {
      return 2 * std::int64_t{cpus_of_[i]} <= std::int64_t{of_a_node} * trace_.jobs[i].job.nodes;
    };
    std::size_t sharing = 0;
    for (std::size_t i = 0; i < cpus_of_.size(); ++i) sharing += shares(i) ? 1 : 0;
    if (static_cast<double>(sharing) <= kFewShare * static_cast<double>(cpus_of_.size())) return;
    trace_.cpus_of_a_node = of_a_node;
    for (std::size_t i = 0; i < cpus_of_.size(); ++i) trace_.jobs[i].job.nodes = cpus_of_[i];
  }

  static std::optional<Seconds> limit_of(const std::string& text) {
    if (text == "UNLIMITED") return kNoLimit;
    const auto limit =
        slurm_time(text);  // TimelimitRaw counts minutes, as a bare number does there
    return limit ? std::optional<Seconds>(limit->count()) : std::nullopt;
  }

  Columns columns_;
  std::string wanted_;
  std::size_t start_ = columns_.needed("Start"), submit_ = columns_.needed("Submit"),
              end_ = columns_.needed("End"), nodes_ = columns_.needed("NNodes"), limit_{0};
  std::optional<std::size_t> id_ = columns_.of("JobID"), name_ = columns_.of("JobName"),
                             priority_ = columns_.of("Priority"),
                             partition_ = columns_.of("Partition"),
                             cpus_ = columns_.of("AllocCPUS") ? columns_.of("AllocCPUS")
                                                              : columns_.of("NCPUS"),
                             user_;
  std::vector<std::int32_t> cpus_of_;  ///< of each job, where accounting tells
  Trace trace_;
  std::unordered_map<std::string, std::int32_t> users_;
  std::set<std::string> partitions_;
};

Trace read_sacct(std::istream& in, const std::string& titles, const std::string& partition) {
  SacctReader sacct(titles, partition);
  bool is_cut = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with("---")) continue;
    sacct.read(line);
    is_cut = in.eof() && words_of(line).size() < words_of(titles).size();
  }
  Trace trace = sacct.all();
  if (is_cut) trace.notes.emplace_back(kCutInALine);
  return trace;
}

Trace read_lines(std::istream& in, const std::string& partition) {
  std::string line;
  // Above the titles there may be a count.
  for (std::size_t number = 0; number < kTitlesUntil && std::getline(in, line); ++number)
    if (line.find("Submit") != std::string::npos) return read_sacct(in, line, partition);
  throw std::invalid_argument(
      "this is no trace: its first lines hold no titles as sacct prints them (with Submit among "
      "them); print one with sacct -P (hpcbatch sim --help has the line)");
}

class Sums {
 public:
  void add(Seconds wait, double node_hours) {
    waits_.push_back(wait);
    sum_ += static_cast<double>(wait);
    weighted_ += static_cast<double>(wait) * node_hours;
    weights_ += node_hours;
    at_once_ += wait < kMinute ? 1 : 0;
  }
  Waits all() {
    if (waits_.empty()) return {};
    std::sort(waits_.begin(), waits_.end());
    const auto count = static_cast<double>(waits_.size());
    Waits waits;
    waits.mean = sum_ / count / kHour;
    waits.by_node_hours = weights_ > 0 ? weighted_ / weights_ / kHour : 0;
    waits.median = static_cast<double>(quantile(waits_, 0.5)) / kHour;
    waits.most_of_ten = static_cast<double>(quantile(waits_, 0.9)) / kHour;
    waits.at_once = at_once_ / count;
    return waits;
  }

 private:
  std::vector<Seconds> waits_;
  double sum_{0}, weighted_{0}, weights_{0}, at_once_{0};
};

class Correlation {
 public:
  void add(double one, double other) {
    ++count_;
    one_ += one;
    other_ += other;
    one_square_ += one * one;
    other_square_ += other * other;
    both_ += one * other;
  }
  double value() const {
    const double spread =
        (one_square_ - one_ * one_ / count_) * (other_square_ - other_ * other_ / count_);
    return spread > 0 ? (both_ - one_ * other_ / count_) / std::sqrt(spread) : 0;
  }

 private:
  double count_{0}, one_{0}, other_{0}, one_square_{0}, other_square_{0}, both_{0};
};

ClusterModel::Backfill backfill_of(const std::string& word) {
  if (word == "easy") return ClusterModel::Backfill::Easy;
  if (word == "none") return ClusterModel::Backfill::None;
  return ClusterModel::Backfill::Conservative;
}

constexpr Seconds kBucket = 4 * kHour;
constexpr Seconds kHasWaited = 10 * kMinute;
constexpr Seconds kStartsAfterEnd = kMinute;
/// So many users at the same most are no chance.
constexpr int kUsersAtBound = 10;

using Steps = std::vector<std::pair<Seconds, std::int32_t>>;

/// Nodes in use from each moment on.
Steps use_over_time(const Trace& trace) {
  Steps changes;
  changes.reserve(2 * trace.jobs.size());
  for (const TracedJob& traced : trace.jobs) {
    if (traced.job.runs == 0) continue;
    changes.emplace_back(traced.started, traced.job.nodes);
    changes.emplace_back(traced.ended(), -traced.job.nodes);
  }
  std::sort(changes.begin(), changes.end());
  Steps use;
  std::int32_t in_use = 0;
  for (const auto& [when, more] : changes) {
    in_use += more;
    if (!use.empty() && use.back().first == when)
      use.back().second = in_use;
    else
      use.emplace_back(when, in_use);
  }
  return use;
}

std::int32_t at(const Steps& steps, Seconds when) {
  const auto next =
      std::upper_bound(steps.begin(), steps.end(), when,
                       [](Seconds moment, const auto& step) { return moment < step.first; });
  return next == steps.begin() ? 0 : std::prev(next)->second;
}

}  // namespace

Trace read_trace(std::istream& in, const std::string& partition) {
  Trace trace = read_lines(in, partition);
  if (trace.jobs.empty())
    throw std::invalid_argument("the trace has no job that has run" +
                                (partition.empty() ? "" : " in partition " + partition) + " (" +
                                std::to_string(trace.skipped) + " lines skipped)");
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(), [](const auto& one, const auto& other) {
    return one.job.submitted < other.job.submitted;
  });
  Seconds last = 0;
  for (const TracedJob& traced : trace.jobs) last = std::max(last, traced.ended());
  if (last - trace.jobs.front().job.submitted > kLongestTrace)
    throw std::invalid_argument(
        "the trace covers more than 50 years; a time in it is wrong (say with sacct's -S and -E "
        "which part is meant)");
  return trace;
}

Fidelity play_trace(const Trace& trace, const ClusterModel& model, Seconds warm_up) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const Seconds first = trace.jobs.front().job.submitted;
  Cluster cluster(model, first);
  std::vector<Cluster::Id> ids;
  ids.reserve(trace.jobs.size());
  for (const TracedJob& traced : trace.jobs) {
    cluster.advance(traced.job.submitted);
    ids.push_back(cluster.submit(traced.job));
  }
  for (auto next = cluster.next_event(); next; next = cluster.next_event()) cluster.advance(*next);
  // Before the first start accounting has only those that waited until then.
  Seconds counted = trace.jobs.front().started;
  for (const TracedJob& traced : trace.jobs) counted = std::min(counted, traced.started);
  counted = std::max(counted, first) + warm_up;
  Fidelity result;
  result.took = std::chrono::duration<double>(Clock::now() - begin).count();
  result.traced = static_cast<double>(trace.jobs.back().job.submitted - first) / kHour;
  Sums real, played;
  Correlation logs;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const TracedJob& traced = trace.jobs[i];
    const auto started = cluster.started(ids[i]);
    if (traced.job.submitted < counted) continue;
    if (!started) {
      ++result.never_started;
      continue;
    }
    const Seconds wait = traced.started - traced.job.submitted;
    const Seconds would_wait = *started - traced.job.submitted;
    const double node_hours =
        static_cast<double>(traced.job.nodes) * static_cast<double>(traced.job.runs) / kHour;
    real.add(wait, node_hours);
    played.add(would_wait, node_hours);
    logs.add(std::log10(static_cast<double>(wait) + 1),
             std::log10(static_cast<double>(would_wait) + 1));
    result.mean_error += std::abs(static_cast<double>(wait - would_wait)) / kHour;
    ++result.jobs;
  }
  result.real = real.all();
  result.played = played.all();
  result.correlation = logs.value();
  if (result.jobs != 0) result.mean_error /= static_cast<double>(result.jobs);
  return result;
}

ClusterModel large_site(std::int32_t nodes, const std::string& backfill) {
  ClusterModel model;
  model.nodes = {{0, nodes}};
  model.backfill = backfill_of(backfill);
  model.backfill_interval = 10 * kMinute;
  model.resolution = 10 * kMinute;
  model.window = 2 * kDay;
  model.most_tested = 3000;
  model.age_weight = 7000;
  model.size_weight = 100;
  return model;
}

Steps nodes_over_time(const Trace& trace) {
  const Steps use = use_over_time(trace);
  std::map<Seconds, std::int32_t> most;
  for (std::size_t i = 0; i < use.size(); ++i) {
    const Seconds until = i + 1 < use.size() ? use[i + 1].first : use[i].first;
    for (Seconds bucket = use[i].first / kBucket; bucket <= until / kBucket; ++bucket)
      most[bucket] = std::max(most[bucket], use[i].second);
  }
  Steps nodes;
  for (const auto& [bucket, count] : most) {
    std::int32_t around = count;
    for (const Seconds beside : {bucket - 1, bucket + 1}) {
      const auto found = most.find(beside);
      if (found != most.end()) around = std::max(around, found->second);
    }
    nodes.emplace_back(bucket * kBucket, std::max(around, 1));
  }
  if (nodes.empty()) nodes.emplace_back(0, 1);
  return nodes;
}

std::int32_t most_nodes_in_use(const Trace& trace) {
  std::int32_t most = 1;
  for (const auto& [when, in_use] : use_over_time(trace)) most = std::max(most, in_use);
  return most;
}

std::size_t find_dependencies(Trace& trace, const Steps& nodes) {
  const Steps use = use_over_time(trace);
  std::map<std::int32_t, std::vector<std::pair<Seconds, std::size_t>>> ends;  // by user
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].job.user >= 0)
      ends[trace.jobs[i].job.user].emplace_back(trace.jobs[i].ended(), i);
  }
  for (auto& [user, of_user] : ends) std::sort(of_user.begin(), of_user.end());
  std::size_t found = 0;
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    TracedJob& traced = trace.jobs[i];
    if (traced.job.user < 0 || traced.started - traced.job.submitted < kHasWaited) continue;
    const auto& of_user = ends[traced.job.user];
    auto last = std::upper_bound(of_user.begin(), of_user.end(),
                                 std::pair{traced.started, trace.jobs.size()});
    if (last == of_user.begin()) continue;
    --last;
    const auto [ended, before] = *last;
    if (traced.started - ended > kStartsAfterEnd || before >= i) continue;
    if (trace.jobs[before].started >= traced.started) continue;
    if (at(nodes, ended) - at(use, ended - 1) < traced.job.nodes) continue;
    traced.job.after = static_cast<std::uint32_t>(before);
    ++found;
  }
  return found;
}

std::int32_t bound_of_users(const Trace& trace) {
  std::vector<std::tuple<Seconds, std::int32_t, std::int32_t>> changes;
  for (const TracedJob& traced : trace.jobs) {
    if (traced.job.user < 0 || traced.job.runs == 0) continue;
    changes.emplace_back(traced.started, 1, traced.job.user);
    changes.emplace_back(traced.ended(), -1, traced.job.user);
  }
  std::sort(changes.begin(), changes.end());
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> jobs;  // now and at most, by user
  for (const auto& [when, more, user] : changes) {
    auto& [now, most] = jobs[user];
    now += more;
    most = std::max(most, now);
  }
  std::map<std::int32_t, int> users;  // by their most
  for (const auto& [user, counts] : jobs) ++users[counts.second];
  if (users.empty()) return 0;
  const auto [most, count] = *users.rbegin();
  return count >= kUsersAtBound ? most : 0;
}

}  // namespace hpcbatch::foresight
