#include "cli/show/terminal.hpp"

#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"
#include "posix/files.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

namespace hpcbatch {

namespace {

/// Whether a line of progress stands on the terminal: there is one for all of the process.
std::atomic<bool> is_line_drawn{false};

}  // namespace

StatusLine::StatusLine() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

std::optional<std::size_t> StatusLine::room() const {
  if (!is_terminal_) return std::nullopt;
  // A line that wraps could not be drawn over.
  return std::max<std::size_t>(terminal_size(STDERR_FILENO).value_or(TerminalSize{}).columns, 2) -
         1;
}

void StatusLine::show(const std::string& text) {
  if (!is_terminal_) return;
  const std::string line = first_letters(one_line(text), *room());
  is_line_drawn = true;
  write_all(STDERR_FILENO, "\r\x1b[K" + line);
}

void StatusLine::clear() {
  if (is_line_drawn.exchange(false)) write_all(STDERR_FILENO, "\r\x1b[K");
}

std::optional<TerminalSize> terminal_size(int descriptor) {
  if (::isatty(descriptor) == 0) return std::nullopt;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return TerminalSize{};
  return TerminalSize{size.ws_row, size.ws_col};
}

std::optional<std::size_t> columns_of_output() {
  const auto size = terminal_size(STDOUT_FILENO);
  return size ? std::optional(size->columns) : std::nullopt;
}

std::string first_letters(const std::string& line, std::size_t letters) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < line.size();) {
    const Letter letter = first_letter(std::string_view(line).substr(at));
    columns += letter.columns;
    if (columns > letters) return line.substr(0, at);
    at += letter.bytes;
  }
  return line;
}

std::string lines_for(int descriptor, std::string_view said, std::size_t indent) {
  std::string line = show_lines(said);
  const auto size = terminal_size(descriptor);
  const bool is_short = size && width_of(line) <= size->columns;
  if (!size || is_short || size->columns <= 2 * indent || line.find('\n') != line.npos) return line;
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return std::string(line.substr(0, begin)) +
         wrapped(line.substr(begin), size->columns, begin, indent);
}

void say(std::string_view text) {
  StatusLine().clear();
  std::fputs((lines_for(STDERR_FILENO, "hpcbatch: " + std::string(text), 2) + "\n").c_str(),
             stderr);
}

namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// Where nobody watches, a line goes to standard error so often; of several tasks the first at once.
constexpr std::chrono::minutes kTellEvery{1};
/// A bar of what is over by then would only flicker.
constexpr std::chrono::seconds kFirstBar{1};

double ended_of(const json::object& counts) {
  return number_at(counts, "ok") + number_at(counts, "failed") + number_at(counts, "cancelled");
}

std::string in_words(Clock::duration time) {
  return show_duration(std::chrono::duration_cast<std::chrono::seconds>(time));
}

std::string time_left(double coming, double rate) {
  return in_words(std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(coming / rate))) +
         " left";
}

std::string speed_of(double rate) {
  return rate < 1 ? whole(rate * 60) + " a minute" : whole(rate) + " a second";
}

json::object by_state(const json::object& counts) {
  json::object states;
  for (const auto& [ours, theirs] : {std::pair{"done", "ok"},
                                     {"failed", "failed"},
                                     {"cancelled", "cancelled"},
                                     {"running", "running"},
                                     {"held", "held"},
                                     {"waiting", "waiting"}})
    states[ours] = number_at(counts, theirs);
  return states;
}

/// Nothing goes on any more until somebody says so.
bool is_all_held(const json::object& counts) {
  return number_at(counts, "held") > 0 && number_at(counts, "running") == 0 &&
         number_at(counts, "waiting") == 0;
}

/// What matters most comes first.
std::vector<std::string> parts_of(const json::object& counts, const Pace& pace,
                                  Clock::duration elapsed) {
  const double ended = ended_of(counts), total = number_at(counts, "total");
  std::vector<std::string> parts{whole(ended) + "/" + whole(total) + " ended"};
  const double rate = total > 1 ? pace.rate() : 0;
  const bool waits_for_user = is_all_held(counts);
  if (waits_for_user)
    parts.push_back(text_at(counts, "held") + " held: `hpcbatch release ID` lets them start");
  // What is held ends when somebody lets it start.
  const double coming = total - ended - number_at(counts, "held");
  if (rate > 0 && coming > 0) parts.push_back(time_left(coming, rate));
  for (const char* what : {"failed", "cancelled", "running", "held", "waiting"}) {
    const bool is_said = waits_for_user && what == std::string_view("held");
    if (number_at(counts, what) > 0 && !is_said)
      parts.push_back(text_at(counts, what) + " " + what);
  }
  if (rate > 0) parts.push_back(speed_of(rate));
  parts.push_back(in_words(elapsed) + " waited");
  return parts;
}

/// On a narrow terminal what there is room for, and no word of it cut.
std::string progress_of(const json::object& counts, const Pace& pace, Clock::duration elapsed,
                        std::optional<std::size_t> room) {
  constexpr std::size_t kWideBar = 12;
  std::string line, between;
  if (number_at(counts, "total") > 1 && (!room || *room > 3 * kWideBar)) {
    line = "[" + progress_bar(by_state(counts), kWideBar) + "]";
    between = " ";
  }
  for (const std::string& part : parts_of(counts, pace, elapsed)) {
    if (room && line.size() + between.size() + part.size() > *room && !line.empty()) break;
    line += between + part;
    between = ", ";
  }
  return line;
}

/// How it ended, and what to type next.
std::string last_line(const json::object& counts, const std::vector<std::string>& ids,
                      Clock::duration elapsed) {
  const double total = number_at(counts, "total"), ok = number_at(counts, "ok");
  const std::string words = shortest_words(ids);
  std::string line =
      total == ok ? "all " + whole(total) + " done" : whole(ok) + " of " + whole(total) + " done";
  for (const char* what : {"failed", "cancelled"}) {
    if (number_at(counts, what) > 0) line += ", " + text_at(counts, what) + " " + what;
  }
  line += ", " + in_words(elapsed) + " waited";
  if (number_at(counts, "failed") > 0)
    line += "\n`hpcbatch explain " + words + "` says why, `hpcbatch retry " + words +
            "` runs again what did not end well";
  return line;
}

std::string wrapped_lines(const std::string& lines) {
  std::string out;
  for (const std::string_view line : lines_of(lines))
    out += lines_for(STDERR_FILENO, std::string(line), 2) + "\n";
  return out;
}

}  // namespace

std::string Progress::line(const std::string& what, double done, double of, Clock::time_point now) {
  if (what != what_) pace_ = {};
  what_ = what;
  pace_.seen(done, now);
  std::string line = what;
  if (of > 0)
    line += " " + whole(done) + " of " + whole(of);
  else if (done > 0)
    line = whole(done) + " " + what;
  const double rate = pace_.rate();
  if (rate <= 0) return line;
  line += ", " + speed_of(rate);
  if (of > done) line += ", " + time_left(of - done, rate);
  return line;
}

void WaitView::progress(const json::object& counts) {
  const Clock::time_point now = Clock::now();
  pace_.seen(ended_of(counts), now);
  const std::string line = progress_of(counts, pace_, now - begin_, status_.room());
  if (now - begin_ >= kFirstBar) status_.show(line);
  const Clock::time_point before = told_.value_or(begin_);
  const bool is_first = !told_ && number_at(counts, "total") > 1;
  if (status_.is_visible() || is_json_ || (!is_first && now - before < kTellEvery)) return;
  told_ = now;
  std::fputs((line + "\n").c_str(), stderr);
}

int WaitView::end(const json::object& counts, const std::vector<std::string>& ids) {
  status_.clear();
  const bool all_well = ended_of(counts) <= number_at(counts, "ok");
  // Where nobody watches, what was short and went well needs no word.
  if (is_json_)
    print_json(counts);
  else if (status_.is_visible() || told_ || !all_well)
    std::fputs(wrapped_lines(last_line(counts, ids, Clock::now() - begin_)).c_str(), stderr);
  return all_well ? kExitDone : kExitTaskFailed;
}

}  // namespace hpcbatch
