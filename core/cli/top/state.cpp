#include "cli/top/state.hpp"

#include "cli/client/http_client.hpp"
#include "cli/show/changes.hpp"
#include "cli/show/values.hpp"
#include "cli/top/panes.hpp"
#include "cli/top/picture.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hpcbatch::top {
namespace {

namespace json = boost::json;
using Kind = Key::Kind;

constexpr std::size_t kOutputKept = std::size_t{64} << 10;
constexpr std::size_t kOutputAsked = std::size_t{512} << 10;
constexpr double kRateOver = 10;
/// A look ahead into the queues costs the engine more than a list.
constexpr double kPause = 1, kPauseOfWaits = 5, kPauseBehind = 0.1;
/// An engine that is slow to answer is at work, and most of its time is for that.
constexpr double kShare = 9, kLongestPause = 15;

bool has_ended(const json::object& task) {
  const std::string state = text_at(task, "state");
  return state == "done" || state == "failed" || state == "cancelled";
}

void select_row(State& state, const Objects& rows, std::size_t row) {
  ListView& list = state.list();
  list.row = std::min(row, rows.empty() ? 0 : rows.size() - 1);
  list.selected = rows.empty() ? "" : id_of(state.pane, rows[list.row]);
}

/// Rows come and go; what was selected stays so while it is there.
void keep_selection(State& state) {
  ListView& list = state.list();
  const Objects rows = rows_of(state.pane, list);
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const json::object& row) {
    return id_of(state.pane, row) == list.selected;
  });
  select_row(state, rows,
             at == rows.end() ? list.row : static_cast<std::size_t>(at - rows.begin()));
}

/// Another page, or other rows: what was shown is no answer to that.
void begin_list(State& state) {
  ListView& list = state.list();
  list.rows.clear();
  list.target.clear();
  list.trouble.clear();
  list.selected.clear();
  list.row = list.first = 0;
}

void turn_page(State& state, bool is_forward) {
  ListView& list = state.list();
  if (is_forward ? list.next.empty() : list.befores.empty()) return;
  if (is_forward)
    list.befores.push_back(list.next);
  else
    list.befores.pop_back();
  begin_list(state);
}

void move(State& state, std::ptrdiff_t by) {
  const ListView& list = state.list();
  const Objects rows = rows_of(state.pane, list);
  const auto row = static_cast<std::ptrdiff_t>(list.row);
  const auto last = static_cast<std::ptrdiff_t>(rows.size()) - 1;
  if (by > 0 && row >= last) return turn_page(state, true);
  if (by < 0 && row == 0) return turn_page(state, false);
  select_row(state, rows, static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(row + by, 0, last)));
}

void show_pane(State& state, Pane pane) {
  state.pane = pane;
}

void narrow(State& state, Pane pane, const std::string& within) {
  show_pane(state, pane);
  ListView& list = state.list();
  list = ListView{.filter = {}, .within = within, .befores = {}};
}

const json::object* selected_row(const State& state) {
  const Objects rows = rows_of(state.pane, state.list());
  return state.list().row < rows.size() ? &rows[state.list().row].get() : nullptr;
}

/// Into the one that is selected; of several, into the list of them.
void look_into(State& state, bool shows_output) {
  const json::object* row = selected_row(state);
  if (row == nullptr) return;
  const std::string id = id_of(state.pane, *row);
  if (state.pane == Pane::Waits && !row->contains("name")) return;
  const bool is_work = state.pane == Pane::Submissions || state.pane == Pane::Tasks;
  if (is_work && is_range(id)) return narrow(state, state.pane, id);
  const bool is_task = is_work && (id.find('.') != std::string::npos || state.pane == Pane::Tasks ||
                                   number_at(*row, "total") == 1);
  if (shows_output && !is_task) {
    if (is_work) narrow(state, Pane::Tasks, id);
    return;
  }
  state.look =
      LookView{.pane = state.pane, .id = id, .has_output = is_task, .shows_output = shows_output};
}

/// One of a submission's, where it has more than one.
void show_tasks_of(State& state) {
  const json::object* row = selected_row(state);
  if (row == nullptr || state.pane != Pane::Submissions) return;
  const std::string id = id_of(state.pane, *row);
  narrow(state, is_range(id) ? Pane::Submissions : Pane::Tasks, id);
}

void ask_to_change(State& state, ChangeCommand::Change change) {
  const bool is_work =
      state.look ? state.look->pane == Pane::Tasks || state.look->pane == Pane::Submissions
                 : state.pane == Pane::Tasks || state.pane == Pane::Submissions;
  const json::object* row = state.look ? &state.look->shown : selected_row(state);
  const std::string id = state.look       ? state.look->id
                         : row == nullptr ? ""
                                          : id_of(state.pane, *row);
  if (!is_work || id.empty()) {
    state.message = "only submissions and tasks can be changed here";
    state.message_at = state.now;
    return;
  }
  const std::string name = row == nullptr ? "" : text_at(*row, "name");
  const double tasks =
      row == nullptr ? 1 : std::max(number_at(*row, "total"), number_at(*row, "tasks"));
  std::string words = std::string(verb_of(change)) + " " + id;
  if (!name.empty()) words += " (" + name + ")";
  if (tasks > 1) words += ", " + whole(tasks) + " tasks";
  state.asked = Order{change, words, json::object{{"ids", ids_of(id)}}};
}

/// The next column by which one may sort, and at the end none.
void sort_by_next(State& state) {
  ListView& list = state.list();
  const Objects rows = rows_of(state.pane, list);
  const std::vector<ListColumn> columns = columns_of(state.pane, rows, state.now);
  auto at = std::find_if(columns.begin(), columns.end(),
                         [&](const ListColumn& column) { return column.key == list.sort; });
  at = at == columns.end() ? columns.begin() : at + 1;
  // A bar has no order of its own.
  while (at != columns.end() && at->key == "counts") ++at;
  list.sort = at == columns.end() ? "" : at->key;
  list.is_descending = true;
  keep_selection(state);
}

/// One step out of what the list was narrowed to.
void step_out(State& state) {
  ListView& list = state.list();
  if (list.filter.empty() && list.within.empty()) return;
  if (list.filter.empty()) {
    const std::string within = list.within;
    narrow(state, state.pane, "");
    // From a submission's tasks back to the submissions.
    if (state.pane == Pane::Tasks && !is_range(within)) show_pane(state, Pane::Submissions);
    return;
  }
  list.filter.clear();
  list.befores.clear();
  begin_list(state);
}

bool on_change_key(State& state, const std::string& letter) {
  using Change = ChangeCommand::Change;
  if (letter == "c")
    ask_to_change(state, Change::Cancel);
  else if (letter == "r")
    ask_to_change(state, Change::Retry);
  else if (letter == "h")
    ask_to_change(state, Change::Hold);
  else if (letter == "u")
    ask_to_change(state, Change::Release);
  else
    return false;
  return true;
}

void on_list_letter(State& state, const std::string& letter) {
  ListView& list = state.list();
  if (on_change_key(state, letter)) return;
  if (letter == "q" || letter == "Q")
    state.is_over = true;
  else if (letter == "?")
    state.is_help = true;
  else if (letter.size() == 1 && letter[0] >= '1' && letter[0] <= '4')
    show_pane(state, static_cast<Pane>(letter[0] - '1'));
  else if (letter == "j")
    move(state, 1);
  else if (letter == "k")
    move(state, -1);
  else if (letter == "g")
    select_row(state, rows_of(state.pane, list), 0);
  else if (letter == "G")
    select_row(state, rows_of(state.pane, list), list.rows.size());
  else if (letter == "o")
    look_into(state, true);
  else if (letter == "t")
    show_tasks_of(state);
  else if (letter == "/")
    state.typed = list.filter;
  else if (letter == "s")
    sort_by_next(state);
  else if (letter == "S")
    list.is_descending = !list.is_descending;
  else if (letter == "n")
    turn_page(state, true);
  else if (letter == "p")
    turn_page(state, false);
}

void on_click(State& state, const Key& key) {
  const Layout layout = layout_of(state);
  if (const auto pane = pane_at(state, key.row, key.column)) return show_pane(state, *pane);
  if (key.row < layout.first_row || key.row >= layout.first_row + layout.list_rows) return;
  const Objects rows = rows_of(state.pane, state.list());
  const std::size_t row = state.list().first + (key.row - layout.first_row);
  if (row >= rows.size()) return;
  if (row == state.list().row) return look_into(state, false);
  select_row(state, rows, row);
}

void on_list_key(State& state, const Key& key) {
  const auto page = static_cast<std::ptrdiff_t>(layout_of(state).list_rows);
  const auto pane = static_cast<std::size_t>(state.pane);
  switch (key.kind) {
    case Kind::Letter:
      return on_list_letter(state, key.text);
    case Kind::Enter:
    case Kind::Right:
      return look_into(state, false);
    case Kind::Escape:
    case Kind::Left:
    case Kind::Backspace:
      return step_out(state);
    case Kind::Tab:
      return show_pane(state, static_cast<Pane>((pane + 1) % kPanes));
    case Kind::BackTab:
      return show_pane(state, static_cast<Pane>((pane + kPanes - 1) % kPanes));
    case Kind::Up:
    case Kind::WheelUp:
      return move(state, -1);
    case Kind::Down:
    case Kind::WheelDown:
      return move(state, 1);
    case Kind::PageUp:
      return move(state, -page);
    case Kind::PageDown:
      return move(state, page);
    case Kind::Home:
      return select_row(state, rows_of(state.pane, state.list()), 0);
    case Kind::End:
      return select_row(state, rows_of(state.pane, state.list()), state.list().rows.size());
    case Kind::Click:
      return on_click(state, key);
    default:
      return;
  }
}

/// Scrolls what is longer than the terminal; false where the key does something else.
bool scroll(const State& state, const Key& key, std::size_t& first, std::size_t lines) {
  const std::size_t page = layout_of(state).text_rows;
  const std::size_t last = lines - std::min(lines, page);
  const auto go = [&](std::size_t back, std::size_t forward) {
    first = std::min(first - std::min(first, back) + forward, last);
    return true;
  };
  first = std::min(first, last);
  switch (key.kind) {
    case Kind::Up:
      return go(1, 0);
    case Kind::Down:
      return go(0, 1);
    case Kind::WheelUp:
      return go(3, 0);
    case Kind::WheelDown:
      return go(0, 3);
    case Kind::PageUp:
      return go(page, 0);
    case Kind::PageDown:
      return go(0, page);
    case Kind::Home:
      return go(first, 0);
    case Kind::End:
      return go(0, last);
    case Kind::Letter:
      if (key.text == "k") return go(1, 0);
      if (key.text == "j" || key.text == " ") return go(0, key.text == "j" ? 1 : page);
      if (key.text == "g") return go(first, 0);
      return key.text == "G" && go(0, last);
    default:
      return false;
  }
}

void begin_output(LookView& look) {
  look.output.clear();
  look.file.clear();
  look.offset = "0";
  look.is_whole = false;
  look.first = 0;
  look.follows = true;
}

void on_look_key(State& state, const Key& key) {
  LookView& look = *state.look;
  const std::size_t lines = lines_of_look(state).size();
  if (scroll(state, key, look.first, lines)) {
    look.follows = look.first + layout_of(state).text_rows >= lines;
    return;
  }
  const bool is_letter = key.kind == Kind::Letter;
  if (is_letter && on_change_key(state, key.text)) return;
  if (key.kind == Kind::Escape || key.kind == Kind::Left || key.kind == Kind::Backspace ||
      (is_letter && (key.text == "q" || key.text == "Q"))) {
    state.look.reset();
  } else if (is_letter && key.text == "?") {
    state.is_help = true;
  } else if (look.has_output && (key.kind == Kind::Tab || (is_letter && key.text == "o"))) {
    look.shows_output = !look.shows_output;
    begin_output(look);
  } else if (look.has_output && is_letter && key.text == "e") {
    look.is_stderr = !look.is_stderr;
    look.shows_output = true;
    begin_output(look);
  }
}

void on_help_key(State& state, const Key& key) {
  if (scroll(state, key, state.help_first, lines_of_help(state).size())) return;
  state.is_help = false;
  state.help_first = 0;
}

void on_typed_key(State& state, const Key& key) {
  std::string& typed = *state.typed;
  if (key.kind == Kind::Letter && typed.size() < 200) {
    typed += key.text;
  } else if (key.kind == Kind::Backspace) {
    while (!typed.empty() && (static_cast<unsigned char>(typed.back()) & 0xC0) == 0x80)
      typed.pop_back();
    if (!typed.empty()) typed.pop_back();
  } else if (key.kind == Kind::Enter) {
    state.list().filter = typed;
    state.list().befores.clear();
    begin_list(state);
    state.typed.reset();
  } else if (key.kind == Kind::Escape) {
    state.typed.reset();
  }
}

void on_answer_key(State& state, const Key& key) {
  if (key.kind == Kind::Letter && (key.text == "y" || key.text == "Y"))
    state.order = std::move(state.asked);
  state.asked.reset();
}

void take_output(LookView& look, const json::object& piece) {
  look.file = text_at(piece, "file");
  look.output += bytes_of(piece);
  if (look.output.size() > kOutputKept) {
    const std::size_t cut = look.output.find('\n', look.output.size() - kOutputKept);
    look.output.erase(0, cut == std::string::npos ? look.output.size() - kOutputKept : cut + 1);
  }
  if (const std::string next = text_at(piece, "next"); !next.empty()) look.offset = next;
  look.is_whole = flag_at(piece, "end");
  look.is_behind = !look.is_whole && number_at(piece, "next") - number_at(piece, "offset") >=
                                         static_cast<double>(kOutputAsked);
}

void take_engine(State& state, json::object engine) {
  const json::object* tasks = object_at(engine, "tasks");
  if (tasks != nullptr) {
    state.samples.push_back(
        {state.now, number_at(*tasks, "running"),
         number_at(*tasks, "done") + number_at(*tasks, "failed") + number_at(*tasks, "cancelled")});
    constexpr std::size_t kMost = 400;
    if (state.samples.size() > kMost) state.samples.pop_front();
  }
  state.engine = std::move(engine);
}

void take_answer(State& state, const Question& question, json::object value) {
  switch (question.about) {
    case About::Engine:
      return take_engine(state, std::move(value));
    case About::List: {
      ListView& list = state.list();
      const bool is_first = list.target.empty();
      take_rows(state.pane, list, value);
      list.target = question.target;
      list.trouble.clear();
      keep_selection(state);
      // What is listed in its place may be less than there was.
      if (is_first || list.rows.size() <= list.first) list.first = 0;
      return;
    }
    case About::Explained:
      state.look->explained = std::move(value);
      return;
    case About::Shown:
      // A further attempt prints from its beginning.
      if (text_at(value, "attempt") != text_at(state.look->shown, "attempt") &&
          state.look->shown.contains("attempt"))
        begin_output(*state.look);
      state.look->shown = std::move(value);
      return;
    case About::Output:
      return take_output(*state.look, value);
  }
}

}  // namespace

void on_key(State& state, const Key& key) {
  if (key.kind == Kind::Interrupt) {
    state.is_over = true;
  } else if (key.kind == Kind::Suspend) {
    state.is_suspended = true;
  } else if (key.kind == Kind::Redraw) {
    state.is_redrawn = true;
  } else if (state.asked) {
    on_answer_key(state, key);
  } else if (state.typed) {
    on_typed_key(state, key);
  } else if (state.is_help) {
    on_help_key(state, key);
  } else if (state.look) {
    on_look_key(state, key);
  } else {
    on_list_key(state, key);
  }
}

void on_reply(State& state, Reply reply) {
  if (reply.is_lost) {
    if (!state.lost_at) state.lost_at = state.now;
    state.trouble = reply.trouble;
    return;
  }
  state.lost_at.reset();
  const std::vector<Question> wanted = questions_of(state);
  if (std::find(wanted.begin(), wanted.end(), reply.question) == wanted.end()) return;
  if (reply.value) {
    if (state.look && reply.question.about != About::Engine) state.look->trouble.clear();
    return take_answer(state, reply.question, std::move(*reply.value));
  }
  if (reply.question.about == About::List) {
    state.list().trouble = reply.trouble;
    state.list().target = reply.question.target;
    state.list().rows.clear();
  } else if (state.look) {
    state.look->trouble = reply.trouble;
  }
}

void on_done(State& state, const Order& order, const json::object& answer) {
  state.message = change_in_words(order.change, answer, false);
  state.message_at = state.now;
}

void on_refused(State& state, const std::string& trouble) {
  state.message = trouble;
  state.message_at = state.now;
}

std::vector<Question> questions_of(const State& state) {
  std::vector<Question> questions{{About::Engine, "/v1/engine"}};
  if (!state.look) {
    questions.push_back({About::List, target_of(state.pane, state.list())});
    return questions;
  }
  const LookView& look = *state.look;
  const std::string id = encode_part(look.id);
  if (look.pane == Pane::Pilots || look.pane == Pane::Waits) {
    questions.push_back(
        {About::Shown, (look.pane == Pane::Pilots ? "/v1/pilots/" : "/v1/allocations/") + id});
    return questions;
  }
  questions.push_back({About::Shown, (look.has_output ? "/v1/tasks/" : "/v1/arrays/") + id});
  if (!look.shows_output) {
    questions.push_back({About::Explained, "/v1/tasks/" + id + "/explain"});
  } else if (!look.is_whole && !look.shown.empty()) {
    std::string target = "/v1/tasks/" + id + "/log?stream=";
    target += look.is_stderr ? "stderr" : "stdout";
    const bool is_end = look.offset == "0" && has_ended(look.shown);
    target += is_end ? "&tail=" + std::to_string(kOutputKept) : "&offset=" + look.offset;
    questions.push_back({About::Output, target + "&limit=" + std::to_string(kOutputAsked)});
  }
  return questions;
}

bool are_alike(const std::vector<Question>& a, const std::vector<Question>& b) {
  const auto thing_of = [](const Question& question) {
    const std::size_t end = question.target.find("stream=");
    return question.about == About::Output && end != std::string::npos
               ? question.target.substr(0, question.target.find('&', end))
               : question.target;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Question& one, const Question& other) {
                      return one.about == other.about && thing_of(one) == thing_of(other);
                    });
}

double pause_of(const State& state, double took) {
  if (state.look) return state.look->is_behind ? kPauseBehind : kPause;
  const double pause = state.pane == Pane::Waits ? kPauseOfWaits : kPause;
  return std::clamp(kShare * took, pause, kLongestPause);
}

double rate_of(const State& state) {
  if (state.samples.size() < 2) return 0;
  const Sample& last = state.samples.back();
  const auto first =
      std::find_if(state.samples.begin(), state.samples.end(),
                   [&](const Sample& sample) { return last.time - sample.time <= kRateOver; });
  const double time = last.time - first->time;
  return time > 0 ? std::max(0.0, last.ended - first->ended) / time : 0;
}

}  // namespace hpcbatch::top
