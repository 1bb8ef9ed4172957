#include "foresight/replay/trace.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <functional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
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

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

/// 16, or 2K as sacct writes round numbers unless it is told not to.
std::optional<std::int32_t> nodes_of(std::string text) {
  std::int64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    unit = text.back() == 'K' ? 1024 : 1024 * 1024;
    text.pop_back();
  }
  const auto count = number_of<double>(text);
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
    if (priority_) traced.job.priority = number_of<double>(word(*priority_)).value_or(0);
    if (name_) traced.job.name = letters_of(word(*name_));
    if (user_) {
      traced.job.user =
          users_.emplace(word(*user_), static_cast<std::int32_t>(users_.size())).first->second;
    }
    trace_.jobs.push_back(traced);
  }

  Trace all() {
    if (wanted_.empty() && partitions_.size() > 1) {
      std::string names;
      for (const std::string& name : partitions_) names += (names.empty() ? "" : ", ") + name;
      throw std::invalid_argument("the trace has jobs of several partitions (" + names +
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

}  // namespace hpcbatch::foresight
