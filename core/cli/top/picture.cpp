#include "cli/top/picture.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "cli/top/panes.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace hpcbatch::top {
namespace {

namespace json = boost::json;

constexpr std::size_t kFewRows = 16;
constexpr std::size_t kFewColumns = 60;
/// A message stays so long, in seconds.
constexpr double kMessageStays = 8;
constexpr std::size_t kSparkLetters = 40;

bool is_narrow(const State& state) {
  return state.columns < kFewColumns;
}

Colour colour_of(std::string_view state) {
  if (state == "running" || state == "finishing") return Colour::Cyan;
  if (state == "done") return Colour::Green;
  if (state == "failed" || state == "unknown") return Colour::Red;
  if (state == "waiting" || state == "queued" || state == "suspended") return Colour::Yellow;
  if (state == "cancelled" || state == "held") return Colour::Magenta;
  return Colour::Plain;
}

std::string short_name_of(Pane pane, bool is_narrow) {
  return is_narrow && pane == Pane::Submissions ? "Subs" : name_of(pane);
}

std::string tab_of(const State& state, std::size_t pane) {
  return " " + std::to_string(pane + 1) + " " +
         short_name_of(static_cast<Pane>(pane), is_narrow(state)) + " ";
}

std::string duration(double seconds) {
  return show_duration(std::chrono::seconds(static_cast<std::int64_t>(std::max(0.0, seconds))));
}

/// What the engine is, and on the right since when; without one, for how long and why.
void draw_engine(Canvas& canvas, const State& state) {
  if (state.lost_at) {
    canvas.put(0, 0,
               " no engine for " + duration(state.now - *state.lost_at) +
                   ", asking again: " + state.trouble,
               {Colour::Red, true, true});
    return;
  }
  if (state.engine.empty()) {
    canvas.put(0, 0, "hpcbatch", {Colour::Cyan, true});
    return;
  }
  std::size_t at = canvas.put(0, 0, "hpcbatch ", {Colour::Cyan, true});
  const std::string is = text_at(state.engine, "state");
  const std::string message = text_at(state.engine, "message");
  const bool is_well = is == "running" && message.empty();
  at = canvas.put(0, at, is, {is_well ? Colour::Green : Colour::Red, true});
  at = canvas.put(0, at, ", up " + duration_at(state.engine, "uptime_s"));
  if (!message.empty()) canvas.put(0, at, ": " + message, {Colour::Red});
}

struct Count {
  const char* word;
  double number;
};

/// Those that are not 0, and those that everybody looks for.
std::vector<Count> task_counts(const State& state) {
  const json::object* tasks = object_at(state.engine, "tasks");
  std::vector<Count> counts;
  if (tasks == nullptr) return counts;
  for (const char* word :
       {"running", "waiting", "failed", "done", "held", "unknown", "cancelled"}) {
    const double number = number_at(*tasks, word);
    const std::string_view name(word);
    const bool is_usual =
        name == "running" || name == "waiting" || name == "failed" || name == "done";
    if (number > 0 || is_usual) counts.push_back({word, number});
  }
  return counts;
}

/// Counts from that column on; returns the one behind.
std::size_t put_counts(Canvas& canvas, std::size_t row, std::size_t at,
                       const std::vector<Count>& counts) {
  for (const Count& count : counts) {
    const std::string text = grouped(count.number);
    if (at + text.size() + 1 + std::string_view(count.word).size() > canvas.columns()) break;
    at =
        canvas.put(row, at, text, {count.number > 0 ? colour_of(count.word) : Colour::Plain, true});
    at = canvas.put(row, at, std::string(" ") + count.word + "  ");
  }
  return at;
}

std::vector<double> running_of(const State& state) {
  std::vector<double> values;
  for (const Sample& sample : state.samples) values.push_back(sample.running);
  return values;
}

std::vector<double> rates_of(const State& state) {
  std::vector<double> values;
  for (std::size_t i = 1; i < state.samples.size(); ++i) {
    const Sample &before = state.samples[i - 1], &now = state.samples[i];
    const double time = now.time - before.time;
    values.push_back(time > 0 ? std::max(0.0, now.ended - before.ended) / time : 0);
  }
  return values;
}

/// On the right, where what stands on the left leaves room.
void put_spark(Canvas& canvas, std::size_t row, std::size_t left, const std::string& label,
               const std::vector<double>& values, bool is_utf8) {
  constexpr std::size_t kLeast = 8;
  const std::size_t taken = left + width_of(label) + 3;
  if (canvas.columns() < taken + kLeast || values.empty()) return;
  const std::size_t letters = std::min({canvas.columns() - taken, kSparkLetters, values.size()});
  canvas.put_before(row, canvas.columns() - letters - 1, label);
  canvas.put_before(row, canvas.columns(), sparkline(values, letters, is_utf8), {Colour::Cyan});
}

std::string per_second(double rate) {
  const double shown = rate < 10 ? std::round(rate * 10) / 10 : std::round(rate);
  const std::string text = std::to_string(shown);
  return shown < 10 ? text.substr(0, 3) : grouped(shown);
}

void draw_head(Canvas& canvas, const State& state, const Layout& layout, bool is_utf8) {
  draw_engine(canvas, state);
  if (layout.head_rows < 2) return;
  if (layout.head_rows == 2) {
    put_counts(canvas, 1, 0, task_counts(state));
    return;
  }
  std::size_t left = canvas.put(1, 0, "Tasks   ");
  left = put_counts(canvas, 1, left, task_counts(state));
  put_spark(canvas, 1, left, "running", running_of(state), is_utf8);
  left = canvas.put(2, 0, "Pilots  ");
  if (const json::object* pilots = object_at(state.engine, "pilots"))
    left = put_counts(
        canvas, 2, left,
        {{"running", number_at(*pilots, "running")}, {"queued", number_at(*pilots, "queued")}});
  put_spark(canvas, 2, left, per_second(rate_of(state)) + " ended/s", rates_of(state), is_utf8);
}

/// What the list is narrowed to and sorted by.
std::string about_list(const State& state) {
  const ListView& list = state.list();
  std::string about;
  const auto add = [&](const std::string& text) { about += (about.empty() ? "" : ", ") + text; };
  if (!list.within.empty()) add("of " + list.within);
  if (!list.filter.empty()) add("filter '" + list.filter + "'");
  if (!list.sort.empty()) {
    const Objects none;
    for (const ListColumn& column : columns_of(state.pane, none, state.now)) {
      if (column.key == list.sort)
        add("sorted by " + column.title + (list.is_descending ? "" : ", reversed"));
    }
  }
  if (!list.befores.empty() || !list.next.empty())
    add("page " + std::to_string(list.befores.size() + 1) + (list.next.empty() ? "" : "+"));
  return about;
}

void draw_tabs(Canvas& canvas, const State& state, const Layout& layout) {
  std::size_t at = 0;
  if (state.is_help) {
    canvas.put(layout.tabs_row, 0, " Help ", {Colour::Plain, true, true});
    return;
  }
  if (!state.look) {
    for (std::size_t pane = 0; pane < kPanes; ++pane) {
      const bool is_shown = pane == static_cast<std::size_t>(state.pane);
      at = canvas.put(layout.tabs_row, at, tab_of(state, pane), {Colour::Plain, true, is_shown});
    }
    if (!is_narrow(state)) {
      const std::string about = about_list(state);
      const std::size_t room = canvas.columns() - std::min(canvas.columns(), at + 2);
      if (width_of(one_line(about)) <= room)
        canvas.put_before(layout.tabs_row, canvas.columns(), about, {Colour::Grey});
      else
        canvas.put(layout.tabs_row, at + 2, about, {Colour::Grey});
    }
    return;
  }
  const LookView& look = *state.look;
  const char* what = look.pane == Pane::Pilots  ? " Pilot "
                     : look.pane == Pane::Waits ? " Allocation "
                     : look.has_output          ? " Task "
                                                : " Submission ";
  at = canvas.put(layout.tabs_row, 0, what + look.id + " ",
                  {Colour::Plain, true, !look.shows_output});
  if (look.has_output)
    at = canvas.put(layout.tabs_row, at, look.is_stderr ? " Output (stderr) " : " Output ",
                    {Colour::Plain, true, look.shows_output});
  const std::string is = text_at(look.shown, "state");
  canvas.put(layout.tabs_row, at + 1, is, {colour_of(is), true});
}

/// State and bar in their colours.
void colour_row(Canvas& canvas, std::size_t row, const std::string& line,
                const json::object& shown) {
  const std::string is = text_at(shown, "state");
  const std::size_t at = is.empty() ? std::string::npos : line.find(is);
  if (at != std::string::npos)
    canvas.put(row, width_of(line.substr(0, at)), is, {colour_of(is), false});
  const std::size_t bar = line.find(" ["), end = line.find(']', bar == line.npos ? 0 : bar);
  if (!shown.contains("counts") || bar == std::string::npos || end == std::string::npos) return;
  const std::size_t column = width_of(line.substr(0, bar)) + 2;
  for (std::size_t i = bar + 2; i < end; ++i) {
    const char letter = line[i];
    const Colour colour = letter == '#'   ? Colour::Green
                          : letter == 'x' ? Colour::Red
                          : letter == '>' ? Colour::Cyan
                          : letter == '-' ? Colour::Magenta
                                          : Colour::Grey;
    canvas.put(row, column + i - bar - 2, std::string(1, letter), {colour, false});
  }
}

std::string nothing_to_list(const State& state) {
  const ListView& list = state.list();
  if (!list.trouble.empty()) return list.trouble;
  if (list.target.empty()) return "asking the engine ...";
  if (!list.filter.empty())
    return "nothing here matches '" + list.filter + "'; Esc clears the filter";
  switch (state.pane) {
    case Pane::Submissions:
      return "nothing was submitted yet; `hpcbatch submit --help` says how";
    case Pane::Tasks:
      return "no tasks";
    case Pane::Pilots:
      return "no pilot runs; Waits (4) shows those in queues";
    case Pane::Waits:
      return "no site has a queue";
  }
  return "";
}

void draw_list(Canvas& canvas, State& state, const Layout& layout) {
  ListView& list = state.list();
  const Objects rows = rows_of(state.pane, list);
  if (rows.empty()) {
    canvas.put(layout.first_row - 1, 0, nothing_to_list(state),
               {list.trouble.empty() ? Colour::Grey : Colour::Red});
    return;
  }
  if (list.row < list.first) list.first = list.row;
  if (list.row >= list.first + layout.list_rows) list.first = list.row + 1 - layout.list_rows;
  list.first = std::min(list.first, rows.size() - std::min(rows.size(), layout.list_rows));
  const std::vector<std::string> lines =
      lines_of(columns_of(state.pane, rows, state.now), state.pane, rows, canvas.columns());
  canvas.put(layout.first_row - 1, 0, lines[0]);
  canvas.style_row(layout.first_row - 1, {Colour::Cyan, true});
  for (std::size_t i = 0; i < layout.list_rows && list.first + i < rows.size(); ++i) {
    const std::size_t row = layout.first_row + i;
    const std::string& line = lines.at(list.first + i + 1);
    canvas.put(row, 0, line);
    if (list.first + i == list.row)
      canvas.style_row(row, {Colour::Plain, false, true});
    else
      colour_row(canvas, row, line, rows[list.first + i]);
  }
}

void draw_lines(Canvas& canvas, const Layout& layout, const std::vector<std::string>& lines,
                std::size_t& first) {
  first = std::min(first, lines.size() - std::min(lines.size(), layout.text_rows));
  for (std::size_t i = 0; i < layout.text_rows && first + i < lines.size(); ++i)
    canvas.put(layout.tabs_row + 1 + i, 0, lines[first + i]);
  if (lines.size() > layout.text_rows) {
    const std::size_t last = std::min(first + layout.text_rows, lines.size());
    canvas.put_before(layout.tabs_row, canvas.columns(),
                      std::to_string(last) + "/" + std::to_string(lines.size()), {Colour::Grey});
  }
}

std::string hints_of(const State& state) {
  if (state.is_help) return "any key goes back";
  if (state.look && state.look->has_output)
    return "Esc back  Tab output  e stderr  c cancel  r retry  h hold  u release  ? help";
  if (state.look) return "Esc back  c cancel  r retry  h hold  u release  ? help";
  if (state.pane == Pane::Pilots || state.pane == Pane::Waits)
    return "? help  q quit  Enter look  / filter  s sort";
  return "? help  q quit  Enter look  / filter  s sort  c cancel  r retry  h hold  o output  t "
         "tasks";
}

/// As many whole hints as there is room for.
std::string fitting(const std::string& hints, std::size_t room) {
  if (hints.size() <= room) return hints;
  const std::size_t end = hints.rfind("  ", room);
  return hints.substr(0, end == std::string::npos ? room : end);
}

void draw_foot(Canvas& canvas, const State& state, const Layout& layout) {
  const std::size_t row = layout.foot_row, room = canvas.columns();
  if (state.asked) {
    const std::string answer = "? y/n";
    const std::string words = one_line(state.asked->words);
    std::size_t width = 0, bytes = 0;
    while (bytes < words.size()) {
      const Letter letter = first_letter(std::string_view(words).substr(bytes));
      if (width + letter.columns + answer.size() > room) break;
      width += letter.columns;
      bytes += letter.bytes;
    }
    canvas.put(row, 0, words.substr(0, bytes) + answer);
    canvas.style_row(row, {Colour::Yellow, true, true});
  } else if (state.typed) {
    const std::size_t at = canvas.put(row, 0, "filter: " + *state.typed, {Colour::Plain, true});
    canvas.put(row, at, " ", {Colour::Plain, false, true});
    canvas.put(row, at + 3, "Enter applies, Esc leaves it; a state, a failure, an id, a word",
               {Colour::Grey});
  } else if (!state.message.empty() && state.now - state.message_at < kMessageStays) {
    canvas.put(row, 0, state.message, {Colour::Yellow, true});
  } else if (const std::string about = about_list(state);
             is_narrow(state) && !about.empty() && !state.look && !state.is_help) {
    canvas.put(row, 0, about, {Colour::Grey});
  } else {
    canvas.put(row, 0, fitting(hints_of(state), room), {Colour::Grey});
  }
}

/// Without what terminals obey (ECMA-48), and of a line that was written over itself its last state.
std::string as_seen(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  line.remove_prefix(line.rfind('\r') == line.npos ? 0 : line.rfind('\r') + 1);
  std::string out;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool is_sequence = line[at] == '\x1b' && at + 1 < line.size() && line[at + 1] == '[';
    if (is_sequence) {
      at += 2;
      while (at < line.size() && (line[at] < '@' || line[at] > '~')) ++at;
    } else if (line[at] == '\t') {
      out.append(8 - out.size() % 8, ' ');
    } else {
      out += line[at];
    }
  }
  return one_line(out);
}

/// Broken where the terminal ends.
void add_broken(std::vector<std::string>& lines, std::string_view line, std::size_t room) {
  do {
    std::size_t bytes = 0, width = 0;
    while (bytes < line.size()) {
      const Letter letter = first_letter(line.substr(bytes));
      if (width + letter.columns > room) break;
      width += letter.columns;
      bytes += letter.bytes;
    }
    // Nothing fits: the page is narrower than a letter.
    if (bytes == 0) bytes = line.size();
    lines.emplace_back(line.substr(0, bytes));
    line.remove_prefix(bytes);
  } while (!line.empty());
}

void add_lines(std::vector<std::string>& lines, std::string_view text) {
  for (const std::string_view line : hpcbatch::lines_of(text)) lines.emplace_back(line);
}

std::vector<std::string> output_lines(const LookView& look, std::size_t room) {
  std::vector<std::string> lines;
  for (const std::string_view line : hpcbatch::lines_of(look.output))
    add_broken(lines, as_seen(line), room);
  if (!lines.empty()) return lines;
  if (!look.file.empty()) return {"this stream goes to " + look.file};
  return {look.is_whole ? "it printed nothing" : "nothing was printed yet"};
}

}  // namespace

std::string grouped(double number) {
  std::string text = whole(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string sparkline(const std::vector<double>& values, std::size_t letters, bool is_utf8) {
  constexpr std::array<std::string_view, 9> kBlocks = {
      " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
  constexpr std::array<std::string_view, 9> kSigns = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
  const std::size_t count = std::min(letters, values.size());
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(count);
  const double most = count == 0 ? 0 : *std::max_element(begin, values.end());
  std::string line(letters - count, ' ');
  for (auto at = begin; at != values.end(); ++at) {
    // What is there at all is seen.
    const double height = most > 0 ? std::ceil(*at / most * 8) : 0;
    const auto level = static_cast<std::size_t>(std::clamp(height, 0.0, 8.0));
    line += is_utf8 ? kBlocks.at(level) : kSigns.at(level);
  }
  return line;
}

Layout layout_of(const State& state) {
  Layout layout;
  layout.head_rows = state.rows < kFewRows ? 2 : 4;
  if (state.rows < 8) layout.head_rows = 1;
  layout.tabs_row = layout.head_rows;
  layout.first_row = layout.tabs_row + 2;
  layout.foot_row = state.rows > 0 ? state.rows - 1 : 0;
  layout.list_rows =
      std::max<std::size_t>(layout.foot_row - std::min(layout.foot_row, layout.first_row), 1);
  layout.text_rows = layout.list_rows + 1;
  return layout;
}

std::optional<Pane> pane_at(const State& state, std::size_t row, std::size_t column) {
  if (row != layout_of(state).tabs_row) return std::nullopt;
  std::size_t end = 0;
  for (std::size_t pane = 0; pane < kPanes; ++pane) {
    end += tab_of(state, pane).size();
    if (column < end) return static_cast<Pane>(pane);
  }
  return std::nullopt;
}

std::vector<std::string> lines_of_look(const State& state) {
  const LookView& look = *state.look;
  std::vector<std::string> lines;
  if (!look.trouble.empty()) add_lines(lines, wrapped(one_line(look.trouble), state.columns, 0, 2));
  if (look.shows_output && look.trouble.empty()) return output_lines(look, state.columns);
  const json::object& why = look.explained;
  if (!why.empty()) {
    add_lines(lines, wrapped(one_line(text_at(why, "id") + " is " + text_at(why, "state") + ": " +
                                      text_at(why, "text")),
                             state.columns, 0, 2));
    for (const std::string& detail : texts_at(why, "details"))
      add_lines(lines, "  " + wrapped(one_line(detail), state.columns, 2, 4));
    lines.emplace_back();
  }
  json::object shown = look.shown;
  shown.erase("trouble");
  std::vector<std::string> described;
  if (!shown.empty()) add_lines(described, describe(shown, state.columns));
  // A command is not broken at blanks, so that it can be copied; here nothing may be cut.
  for (const std::string& line : described) add_broken(lines, line, state.columns);
  if (lines.empty()) lines.emplace_back("asking the engine ...");
  return lines;
}

std::vector<std::string> lines_of_help(const State& state) {
  constexpr std::array kHelp = {
      std::pair{"1-4, Tab", "submissions, tasks, pilots, waits in queues"},
      std::pair{"Up Down j k", "choose a row; PgUp PgDn g G move further"},
      std::pair{"n p", "next and previous page, 100 rows each"},
      std::pair{"Enter", "look into it; Esc goes back"},
      std::pair{"o", "its output as it comes; e: stderr"},
      std::pair{"t", "the tasks of a submission"},
      std::pair{"/", "filter, words with blanks between"},
      std::pair{"", "failed, running ...: by state"},
      std::pair{"", "oom_task, exit:3, signal:9: by failure"},
      std::pair{"", "12: tasks of submission 12"},
      std::pair{"", "name:map: submissions by name"},
      std::pair{"", "other words: in the rows of this page"},
      std::pair{"s", "sort by the next column; S reverses the order"},
      std::pair{"c", "cancel"},
      std::pair{"r", "retry what failed or was cancelled"},
      std::pair{"h u", "hold what waits; release it"},
      std::pair{"q Ctrl-C", "quit; engine and tasks go on"},
      std::pair{"mouse", "click, click again to look, wheel"}};
  std::vector<std::string> lines;
  for (const auto& [keys, what] : kHelp) {
    std::string line = std::string(keys);
    line.resize(13, ' ');
    add_lines(lines,
              line + wrapped(what, std::max<std::size_t>(state.columns, 20), line.size(), 13));
  }
  return lines;
}

Canvas picture(State& state, const Abilities& abilities) {
  Canvas canvas(state.rows, state.columns);
  const Layout layout = layout_of(state);
  draw_head(canvas, state, layout, abilities.is_utf8);
  draw_tabs(canvas, state, layout);
  if (state.is_help) {
    draw_lines(canvas, layout, lines_of_help(state), state.help_first);
  } else if (state.look) {
    const std::vector<std::string> lines = lines_of_look(state);
    if (state.look->shows_output && state.look->follows) state.look->first = lines.size();
    draw_lines(canvas, layout, lines, state.look->first);
  } else {
    draw_list(canvas, state, layout);
  }
  draw_foot(canvas, state, layout);
  return canvas;
}

}  // namespace hpcbatch::top
