#include "replay/poll_file.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hpcbatch::foresight {
namespace {

// Nobody waits for longer; what says so is damaged.
constexpr Seconds kLongestWait = kDay * 365 * 20;

/// Cells of a line; a cell in quotes may have commas in it.
std::vector<std::string_view> cells_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> cells;
  for (bool goes_on = true; goes_on;) {
    std::string_view cell;
    std::size_t end = 0;
    if (line.starts_with('"')) {
      const auto closing = line.find('"', 1);
      if (closing == std::string_view::npos) throw std::invalid_argument("a quote has no end");
      cell = line.substr(1, closing - 1);
      end = closing + 1;
      if (end < line.size() && line[end] != ',')
        throw std::invalid_argument("behind a cell in quotes there is no comma");
    } else {
      end = std::min(line.find(','), line.size());
      cell = line.substr(0, end);
    }
    cells.push_back(cell);
    goes_on = end < line.size();
    line.remove_prefix(goes_on ? end + 1 : end);
  }
  return cells;
}

[[noreturn]] void no_good(std::string_view column, std::string_view cell, const char* wanted) {
  throw std::invalid_argument(std::string(column) + " is '" + std::string(cell.substr(0, 40)) +
                              "' and not " + wanted);
}

/// NaN of an empty cell and of an infinity, as a share of nothing is.
float number_in(std::string_view column, std::string_view cell) {
  if (cell.empty()) return kNotSaid;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size()) no_good(column, cell, "a number");
  const auto number = static_cast<float>(value);
  return std::isfinite(number) ? number : kNotSaid;
}

template <class Whole>
Whole whole_in(std::string_view column, std::string_view cell) {
  Whole value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size())
    no_good(column, cell, "a whole number");
  return value;
}

/// 2021-05-01 12:00:00, of whatever zone: all of a file are of one.
Seconds moment_in(std::string_view column, std::string_view cell) {
  constexpr std::string_view kForm = "0000-00-00 00:00:00";
  bool fits = cell.size() == kForm.size();
  for (std::size_t at = 0; fits && at < kForm.size(); ++at)
    fits = kForm[at] == '0' ? cell[at] >= '0' && cell[at] <= '9' : cell[at] == kForm[at];
  if (!fits) no_good(column, cell, "a moment such as 2021-05-01 12:00:00");
  const auto part = [&](std::size_t at, std::size_t length) {
    return whole_in<int>(column, cell.substr(at, length));
  };
  const std::chrono::year_month_day date{std::chrono::year{part(0, 4)},
                                         std::chrono::month{static_cast<unsigned>(part(5, 2))},
                                         std::chrono::day{static_cast<unsigned>(part(8, 2))}};
  if (!date.ok() || part(11, 2) > 23 || part(14, 2) > 59 || part(17, 2) > 60)
    no_good(column, cell, "a day and time that there is");
  return std::chrono::sys_days{date}.time_since_epoch().count() * kDay + part(11, 2) * kHour +
         part(14, 2) * kMinute + part(17, 2);
}

/// What `billing=4,cpu=20,gres/gpu=4,mem=193024M,node=1` says of one of them.
float asked_in(std::string_view text, std::string_view what, float otherwise) {
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, end);
    if (one.starts_with(what) && one.size() > what.size() && one[what.size()] == '=')
      return number_in("req_tres", one.substr(what.size() + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return otherwise;
}

/// Where the columns that are read stand.
class PollColumns {
 public:
  explicit PollColumns(const std::vector<std::string_view>& titles) : count_(titles.size()) {
    const auto place = [&](std::string_view title) {
      const auto found = std::find(titles.begin(), titles.end(), title);
      if (found == titles.end())
        throw std::invalid_argument("the file has no column " + std::string(title) +
                                    ": it is no poll of a queue as this program reads them");
      return static_cast<std::size_t>(found - titles.begin());
    };
    std::transform(kKnownColumns.begin(), kKnownColumns.end(), known_.begin(), place);
    std::transform(kFactColumns.begin(), kFactColumns.end(), facts_.begin(), place);
    wait_ = place(kWaitColumn);
  }

  void read(const std::vector<std::string_view>& cells, Polls& into) const {
    if (cells.size() != count_)
      throw std::invalid_argument("it has " + std::to_string(cells.size()) + " cells and " +
                                  std::to_string(count_) + " titles");
    PolledJob job;
    const auto fact = [&](std::size_t at) { return cells[facts_[at]]; };
    job.polled = moment_in(kFactColumns[0], fact(0));
    job.submitted = moment_in(kFactColumns[1], fact(1));
    job.eligible = moment_in(kFactColumns[2], fact(2));
    job.partition = whole_in<std::uint32_t>(kFactColumns[3], fact(3));
    job.account = whole_in<std::uint32_t>(kFactColumns[4], fact(4));
    job.nodes = asked_in(fact(5), "node", kNotSaid);
    job.gpus = asked_in(fact(5), "gres/gpu", 0);
    job.billing = asked_in(fact(5), "billing", kNotSaid);
    for (std::size_t at = 0; at < known_.size(); ++at)
      job.known[at] = number_in(kKnownColumns[at], cells[known_[at]]);
    const auto waited = whole_in<Seconds>(kWaitColumn, cells[wait_]);
    if (waited < 0 || waited > kLongestWait) no_good(kWaitColumn, cells[wait_], "a wait");
    into.jobs.push_back(job);
    into.waited.push_back(waited);
  }

 private:
  std::size_t count_;
  std::array<std::size_t, kKnownColumns.size()> known_{};
  std::array<std::size_t, kFactColumns.size()> facts_{};
  std::size_t wait_{0};
};

Polls by_their_polls(const Polls& polls) {
  std::vector<std::size_t> order(polls.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return polls.jobs[one].polled < polls.jobs[other].polled;
  });
  Polls sorted;
  sorted.jobs.reserve(order.size());
  sorted.waited.reserve(order.size());
  for (const std::size_t at : order) {
    sorted.jobs.push_back(polls.jobs[at]);
    sorted.waited.push_back(polls.waited[at]);
  }
  return sorted;
}

}  // namespace

Polls read_polls(std::istream& in) {
  std::string line;
  if (!std::getline(in, line)) throw std::invalid_argument("the file is empty");
  const PollColumns columns(cells_of(line));
  Polls polls;
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    try {
      columns.read(cells_of(line), polls);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("line " + std::to_string(number) + ": " + error.what());
    }
  }
  if (polls.jobs.empty()) throw std::invalid_argument("the file has titles and no job");
  return by_their_polls(polls);
}

}  // namespace hpcbatch::foresight
