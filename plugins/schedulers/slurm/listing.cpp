#include "listing.hpp"

#include "states.hpp"
#include "submission.hpp"
#include "words.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace hpcbatch::slurm {
namespace {

// Of one batch job: as many as SLURM's own lists may have (MAX_SLURM_NODES).
constexpr std::size_t kMostNodes = 65536;

/// squeue lists all of this user's at once, ended ones for MinJobAge (300 s) after their end.  Only
/// a name that it does not know is looked up in the accounting, if there is any, and only for how
/// it ended: its view of what runs is older than squeue's, and a record whose end it missed runs
/// there for ever.  `--all`: partitions may be hidden from those who use them.  Each line has a
/// mark, so that a banner is no batch job, and the name last, because another batch job's name may
/// contain anything.
constexpr const char* kList = R"sh(
jobs=$(squeue --me --all --noheader --states=all --format='hb|%i|%T|%L|%N|%r|%j') || exit
printf '%s\n' "$jobs"
unknown=
for name in "$@"; do
  case "$jobs
" in *"|$name
"*) ;; *) unknown="$unknown,$name" ;; esac
done
if [ -n "$unknown" ] && command -v sacct >/dev/null 2>&1; then
  timeout 10 sacct --noheader --parsable2 --allocations --starttime=now-7days --name="${unknown#,}" \
    --format=jobid,state,timelimit,nodelist,reason,jobname 2>/dev/null | sed 's/^/hbacct|/'
fi
echo hbend
)sh";

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool is_state(std::string_view word) {
  return !word.empty() &&
         word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos;
}

/// The part of a range list inside brackets: "1-2,07".
bool add_ranges(std::string_view head, std::string_view ranges, std::string_view tail,
                std::vector<std::string>& names) {
  while (!ranges.empty()) {
    const auto comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    const auto dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    unsigned long from = 0;
    unsigned long to = 0;
    if (!read_number(first, from) || !read_number(last, to) || to < from ||
        to - from >= kMostNodes - std::min(names.size(), kMostNodes))
      return false;
    for (; from <= to; ++from) {
      std::string number = std::to_string(from);
      if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
      names.push_back(std::string(head) + number + std::string(tail));
    }
    ranges.remove_prefix(std::min(comma + 1, ranges.size()));
  }
  return true;
}

Error distrust(const std::string& why) {
  return {Error::Kind::Transient, "cannot list the batch jobs of SLURM: " + why};
}

}  // namespace

CommandLine list_jobs(const std::vector<std::string>& names) {
  CommandLine command{.argv = {"sh", "-c", kList, "sh"}};
  command.argv.insert(command.argv.end(), names.begin(), names.end());
  return command;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
Result<std::vector<BatchJob>> read_jobs(const std::string& prefix, const CommandOutput& output) {
  if (output.timed_out) return distrust("squeue gave no answer in time");
  if (output.exit_code != 0) {
    return distrust("squeue exit " + std::to_string(output.exit_code) + ": " +
                    one_line(output.standard_error));
  }
  std::vector<BatchJob> jobs;
  bool whole = false;
  std::istringstream lines(output.standard_output);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (whole) return distrust("a line after the end: " + one_line(line));
    whole = line == "hbend";
    if (whole) continue;
    const auto parts = fields(line, 7);
    const bool is_accounting = !parts.empty() && parts[0] == "hbacct";
    if (parts.empty() || (parts[0] != "hb" && !is_accounting)) {
      return distrust("a line that is no batch job: " + one_line(line));
    }
    if (!parts[6].starts_with(prefix)) continue;
    const std::string state = parts[2].substr(0, parts[2].find(' '));  // "CANCELLED by 0"
    if (!is_state(state)) return distrust("no state of a batch job: " + one_line(line));
    // Of a federation: another cluster has taken this batch job, under the same name.
    if (state == "REVOKED") continue;
    const Meaning meaning = meaning_of(state, parts[5]);
    if (is_accounting && meaning.state != BatchState::Ended) continue;
    BatchJob job{.name = parts[6],
                 .number = parts[1],
                 .state = meaning.state,
                 .cause = meaning.cause,
                 .reason = parts[5].empty() || parts[5] == "None" ? state : parts[5]};
    if (job.state == BatchState::Running) job.time_left = read_duration(parts[3]);
    if (parts[4] != "None assigned") job.nodes = node_names(parts[4]);
    jobs.push_back(std::move(job));
  }
  if (!whole) return distrust("half an answer");
  return jobs;
}

std::vector<std::string> node_names(std::string_view list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin < list.size()) {
    const auto open = list.find('[', begin);
    const auto comma = std::min(list.find(',', begin), list.size());
    if (open == std::string_view::npos || comma < open) {
      names.emplace_back(list.substr(begin, comma - begin));
      begin = comma + 1;
      continue;
    }
    const auto close = list.find(']', open);
    if (close == std::string_view::npos) return {std::string(list)};
    const auto end = std::min(list.find(',', close), list.size());
    if (!add_ranges(list.substr(begin, open - begin), list.substr(open + 1, close - open - 1),
                    list.substr(close + 1, end - close - 1), names)) {
      return {std::string(list)};
    }
    begin = end + 1;
  }
  return names;
}

std::optional<std::chrono::seconds> read_duration(std::string_view text) {
  long days = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    if (!read_number(text.substr(0, dash), days)) return std::nullopt;
    text.remove_prefix(dash + 1);
  }
  long seconds = 0;
  int parts = 0;
  while (true) {
    const auto colon = std::min(text.find(':'), text.size());
    long part = 0;
    if (!read_number(text.substr(0, colon), part) || part < 0 || ++parts > 3) return std::nullopt;
    seconds = seconds * 60 + part;
    if (colon == text.size()) break;
    text.remove_prefix(colon + 1);
  }
  if (parts == 1) return std::nullopt;
  return std::chrono::seconds(days * 86400 + seconds);
}

}  // namespace hpcbatch::slurm
